const kept = (key) => `uniun-draft:${key}`;
const SENT = "uniun-sent:";
const BEGAN = "uniun-begun-at";
const editing_of = (key) => `uniun-editing:${key}`;
const NO_LINE = "There is no connection at the moment. Your text is kept; send it when it is back.";
const joined = (...texts) => texts.filter(Boolean).join("\n");
// Where one types on the screen, Enter is a new line. Who has neither mouse nor screen to touch sends with it.
const touched = () => matchMedia("(pointer: coarse)").matches;
// The server knows by it whether it has the question already.
const new_id = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
// The browser's stores may be full or forbidden: then nothing outlasts a reload, and all the rest works.
const storage = (name) => ({
  get(key) {
    try {
      return window[name].getItem(key);
    } catch {
      return null;
    }
  },
  set(key, text) {
    try {
      window[name].setItem(key, text);
    } catch {}
  },
  remove(key) {
    try {
      window[name].removeItem(key);
    } catch {}
  },
  keys() {
    try {
      return Object.keys(window[name]);
    } catch {
      return [];
    }
  },
});
const [store, tab] = [storage("localStorage"), storage("sessionStorage")];
const AGAIN_MS = 3000;
const MOST_TRIES = 10;

export default {
  template: `
    <form class="u-composer" @submit.prevent="send">
      <div v-if="editing" class="u-editing">
        <span>Asking differently; the first way stays on its own branch.</span>
        <button type="button" class="u-link" @click="cancelEdit">Cancel</button>
      </div>
      <div v-if="branching && !editing" class="u-editing">
        <span role="status">What you write next begins a new branch here. What followed stays{{ where }}.</span>
        <button type="button" class="u-link" @click="$emit('unbranch')">Cancel</button>
      </div>
      <p v-if="note" class="u-editing" role="alert">{{ note }}</p>
      <div class="u-composer-box">
        <textarea ref="box" rows="1" v-model="text" :aria-label="label" :placeholder="label + '…'"
          @input="typed" @keydown="key" enterkeyhint="send"></textarea>
        <button v-if="busy" type="button" class="u-send u-stop" aria-label="Stop the answer" title="Stop (Esc)"
          @click="stop"><span class="u-stop-mark"></span></button>
        <button v-else type="submit" class="u-send" aria-label="Send" title="Send (Enter)"
          :disabled="!text.trim()"><i class="q-icon material-icons" aria-hidden="true">arrow_upward</i></button>
      </div>
    </form>`,
  props: { draft_key: String, label: String, where: String, longest: Number, busy: Boolean, waits: Boolean, branching: Boolean },
  emits: ["send", "unsure", "stop", "typing", "unbranch"],
  // sent: asked, and not known to be in the database. unsure: those of an earlier visit. back: the one that came back.
  data: () => ({ text: "", editing: null, sent: null, unsure: [], back: null, tries: 0, note: "", before: "", told_at: -Infinity }),
  mounted() {
    // A page that was being reloaded already when its conversation began could not change the address any more.
    const [began, address] = JSON.parse(tab.get(BEGAN) ?? "[]");
    tab.remove(BEGAN);
    const reloaded = performance.getEntriesByType("navigation")[0]?.type === "reload";
    if (reloaded && began === this.draft_key && address !== location.pathname + location.search) location.replace(address);
    this.key_of_draft = this.draft_key;
    // A tab has its own draft. What a tab that is gone has left is for the next one.
    const own = tab.get(kept(this.key_of_draft));
    this.stored = this.text = own ?? store.get(kept(this.key_of_draft)) ?? "";
    this.tabs = new BroadcastChannel("uniun-composer");
    this.tabs.onmessage = ({ data: { asks, has } }) => {
      if (asks === this.key_of_draft && this.text) this.tabs.postMessage({ has: this.text });
      if (has && has === this.left) this.text = this.left = "";
    };
    this.left = own === null ? this.text : "";
    if (this.left) this.tabs.postMessage({ asks: this.key_of_draft });
    const [editing, asked] = JSON.parse(tab.get(editing_of(this.key_of_draft)) ?? "[]");
    if (editing) [this.editing, this.before, this.text] = [editing, this.text, asked];
    this.unsure = store.keys()
      .filter((key) => key.startsWith(SENT))
      .map((key) => ({ id: key.slice(SENT.length), ...JSON.parse(store.get(key)) }))
      .filter(({ key }) => key === this.key_of_draft);
    if (this.unsure.length) this.$emit("unsure", this.unsure.map(({ id }) => id));
    this.timer = setInterval(this.insist, AGAIN_MS);
    this.$nextTick(this.grow);
    this.anywhere = (event) => {
      if (event.defaultPrevented || document.querySelector(".q-dialog")) return;
      if (event.key === "Escape" && this.busy) this.$emit("stop");
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, select, [contenteditable]")) {
        const search = document.querySelector("[data-search]");
        if (search && search.offsetParent !== null) {
          event.preventDefault();
          search.focus();
        }
      }
    };
    document.addEventListener("keydown", this.anywhere);
    if (matchMedia("(pointer: fine)").matches) this.$refs.box.focus({ preventScroll: true });
  },
  unmounted() {
    document.removeEventListener("keydown", this.anywhere);
    clearInterval(this.timer);
    this.tabs.close();
  },
  watch: {
    busy() {
      this.note = "";
    },
    waits() {
      this.note = "";
    },
  },
  methods: {
    grow() {
      const box = this.$refs.box;
      if (!box) return;
      box.style.height = "auto";
      box.style.overflowY = box.scrollHeight > 240 ? "auto" : "hidden"; // else a narrow page has arrows in one line
      box.style.height = `${Math.min(box.scrollHeight, 240)}px`;
    },
    typed() {
      this.grow();
      this.note = this.left = "";
      if (this.back && !this.text.includes(this.back.text)) this.forget(this.back.id);
      this.keep();
      const now = performance.now();
      if (this.text.trim() && now - this.told_at > 3000) {
        this.told_at = now;
        this.$emit("typing");
      }
    },
    key(event) {
      if (event.key === "Escape" && this.editing) {
        event.preventDefault();
        this.cancelEdit();
      }
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || touched()) return;
      event.preventDefault();
      this.send();
    },
    send() {
      if (this.text.isWellFormed?.() === false) this.text = this.text.toWellFormed(); // half a character cannot be sent
      if (!this.text.trim()) return;
      this.note = this.hindrance();
      if (this.note) return;
      const { text, editing, back } = this;
      const again = back !== null && back.text === text && back.editing === editing;
      if (back && !again) this.forget(back.id);
      this.back = null;
      this.sent = { id: again ? back.id : new_id(), text, editing };
      this.tries = 0;
      store.set(SENT + this.sent.id, JSON.stringify({ key: this.key_of_draft, text, editing }));
      this.$emit("send", { ...this.sent, again });
      this.text = editing ? this.before : "";
      this.editing = null;
      this.keep();
      this.$nextTick(this.grow);
    },
    stop() {
      this.$emit("stop");
      if (!touched()) this.$refs.box.focus(); // the button goes
    },
    // Why it cannot be sent now.
    hindrance() {
      if (this.waits) return "Another program is writing an answer here. Send this when it has ended.";
      if (this.busy) return "An answer is being written. Send this when it has ended, or stop it.";
      if (this.sent || this.unsure.length) return "Your last question is still on its way. Send this when it is there.";
      if (this.text.length > this.longest) {
        const [length, longest] = [this.text.length, this.longest].map((count) => count.toLocaleString("en"));
        return `This has ${length} characters, and a question may have ${longest}. Shorten it, or put it into a note and ask about that.`;
      }
      if (!window.socket?.connected) return NO_LINE;
      return "";
    },
    // What is told over a line that just broke never arrives, and nothing says so.
    insist() {
      if (this.note === NO_LINE && window.socket?.connected) this.note = "";
      if (!window.socket?.connected || !(this.sent || this.unsure.length)) return;
      this.tries += 1;
      if (this.tries > MOST_TRIES) {
        for (const question of [this.sent, ...this.unsure].filter(Boolean)) this.comeBack(question);
        this.note = "The server does not say whether it has your question. It is back here; if it was taken, sending it once more does not ask it twice.";
      } else if (this.sent) this.$emit("send", { ...this.sent, again: true });
      else this.$emit("unsure", this.unsure.map(({ id }) => id));
    },
    // For a reload. Another tab may have kept its own text there since.
    keep() {
      const text = this.editing ? this.before : this.text;
      tab.set(kept(this.key_of_draft), text);
      if (text) store.set(kept(this.key_of_draft), text);
      else if (store.get(kept(this.key_of_draft)) === this.stored) store.remove(kept(this.key_of_draft));
      this.stored = text;
      if (this.editing) tab.set(editing_of(this.key_of_draft), JSON.stringify([this.editing, this.text]));
      else tab.remove(editing_of(this.key_of_draft));
    },
    accepted(draft_key, address) {
      if (this.draft_key === this.key_of_draft) tab.set(BEGAN, JSON.stringify([this.draft_key, address]));
      if (draft_key !== this.key_of_draft) {
        tab.remove(kept(this.key_of_draft));
        if (store.get(kept(this.key_of_draft)) === this.stored) store.remove(kept(this.key_of_draft));
      }
      this.key_of_draft = draft_key;
      this.keep();
      this.told_at = -Infinity;
    },
    // It is in the database. By then it may have come back.
    taken(id) {
      const question = [this.back, ...this.unsure].find((question) => question?.id === id);
      if (question?.text === this.text) {
        this.text = this.editing ? this.before : "";
        this.editing = null;
      }
      this.forget(id);
      this.keep();
      this.$nextTick(this.grow);
    },
    refused(id) {
      const question = [this.sent, ...this.unsure].find((question) => question?.id === id);
      if (!question) return;
      if (question !== this.sent) this.note = "Your last question had not arrived. It is back here.";
      this.comeBack(question);
    },
    forget(id) {
      store.remove(SENT + id);
      if (this.sent?.id === id) this.sent = null;
      if (this.back?.id === id) this.back = null;
      this.unsure = this.unsure.filter((question) => question.id !== id);
    },
    // Before what has been typed since. Its id stays with it, also over a reload, as long as it stays what it is.
    comeBack({ id, text, editing }) {
      if (this.sent?.id === id) this.sent = null;
      this.unsure = this.unsure.filter((question) => question.id !== id);
      if (this.editing) this.before = joined(text, this.before);
      else if (editing) [this.editing, this.before, this.text] = [editing, this.text === text ? "" : this.text, text];
      else if (!this.text.includes(text)) this.text = joined(text, this.text);
      if (this.back) store.remove(SENT + this.back.id);
      this.back = { id, text, editing };
      this.keep();
      this.$nextTick(this.grow);
    },
    focus() {
      this.$refs.box.focus();
    },
    edit(message_id, text) {
      if (!this.editing) this.before = this.text;
      this.editing = message_id;
      this.text = text;
      this.keep();
      this.$nextTick(() => {
        this.grow();
        this.$refs.box.focus();
      });
    },
    cancelEdit() {
      this.editing = null;
      this.text = this.before;
      this.keep();
      this.$nextTick(this.grow);
      this.$refs.box.focus();
    },
  },
};
