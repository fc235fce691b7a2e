// Texts in this browser that belong to no note: typed into a new one that could not be kept. Found by their first words.
const KEY = "uniun/draft/";
const MOST = 20; // on the page
const MOST_ASKED = 200; // of the server: a page that was left before it was told so leaves what was saved
const MOST_COMPARED = 100000; // characters of all texts that are compared with their notes; they must go through the line
const WORDS = 80;

export default {
  template: `
    <ul v-if="shown.length" class="u-banner u-warn u-drafts" aria-label="Texts that were not saved">
      <li v-for="one in shown" :key="one.note">
        <template v-if="one.kept">
          <span class="u-grow" role="status">Discarded: “{{ one.words }}”</span>
          <span class="u-row"><q-btn class="u-button" no-caps outline :data-undo="one.note" :aria-label="'Undo: ' + one.words" @click="undo(one)">Undo</q-btn></span>
        </template>
        <template v-else>
          <span class="u-grow">A text that was not saved: “{{ one.words }}”</span>
          <span class="u-row"><q-btn class="u-button" no-caps outline :href="'/notes/' + one.note + '?begin=1'" :aria-label="'Open ' + one.words">Open</q-btn>
          <q-btn class="u-button" no-caps flat :aria-label="'Discard ' + one.words" @click="discard(one)">Discard</q-btn></span>
        </template>
      </li>
    </ul>`,
  props: { only: String },
  data() {
    return { drafts: [], lost: [], discarded: [] }; // until the page is left
  },
  computed: {
    shown() {
      // In an order that stays: the next click must not meet another text.
      return [...this.drafts.filter((one) => this.lost.includes(one.note)).slice(0, MOST), ...this.discarded].sort((a, b) => (a.note < b.note ? -1 : 1));
    },
  },
  mounted() {
    this.look();
    // Another tab may save one meanwhile, or give it up.
    window.addEventListener("storage", this.look);
  },
  beforeUnmount() {
    window.removeEventListener("storage", this.look);
  },
  methods: {
    look() {
      this.drafts = [];
      const texts = [];
      let room = MOST_COMPARED;
      try {
        for (const key of Object.keys(localStorage)) {
          const note = key.startsWith(KEY) ? key.slice(KEY.length) : "";
          if (!/^[0-9a-f]{32}$/.test(note) || (this.only && note !== this.only) || this.drafts.length === MOST_ASKED) continue;
          const raw = localStorage.getItem(key);
          const words = firstWords(raw);
          if (words) this.drafts.push({ note, words, raw });
          if (!words || raw.length > room) continue;
          texts.push([note, ...whole(raw)]);
          room -= raw.length;
        }
      } catch {} // The browser's store is forbidden: nothing is in it.
      if (this.drafts.length) this.$emit("found", { notes: this.drafts.map((one) => one.note), texts });
    },
    // What the server says: these have no note, and those were saved as they are.
    offer(notes, saved) {
      this.lost = notes;
      for (const { note, raw } of this.drafts.filter((one) => saved.includes(one.note))) {
        if (localStorage.getItem(KEY + note) === raw) localStorage.removeItem(KEY + note);
      }
    },
    discard({ note, words }) {
      this.discarded.push({ note, words, kept: localStorage.getItem(KEY + note) });
      localStorage.removeItem(KEY + note);
      this.look();
      this.$nextTick(() => this.$el.querySelector(`[data-undo="${note}"]`)?.focus());
    },
    undo({ note, kept }) {
      localStorage.setItem(KEY + note, kept);
      this.discarded = this.discarded.filter((one) => one.note !== note);
      this.look();
    },
  },
};

function whole(kept) {
  const { title, text } = JSON.parse(kept);
  return [title, text].map((each) => (each.isWellFormed?.() === false ? each.toWellFormed() : each));
}

function firstWords(kept) {
  try {
    const { title, text } = JSON.parse(kept);
    const words = `${title} ${text.slice(0, 4 * WORDS)}`.trim().replace(/\s+/g, " ");
    return words.length > WORDS ? `${words.slice(0, WORDS)}…` : words;
  } catch {
    return "";
  }
}
