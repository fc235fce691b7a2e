// Title and text of a note. Every keystroke is kept in the browser until the server has said that it is saved.
const IDLE_MS = 700;
const LONGEST_MS = 3000;
const RETRY_MS = 1000;
const FAILED_MS = 10000;
const COMPLETE_MS = 80;
const LONGEST_BEGINNING = 100;
const LIST_PX = 320; // as wide, and about as high when it is full
const GAP_PX = 4;
const KEY = "uniun/draft/";

export default {
  template: `
    <div class="u-note-field">
      <input class="u-note-title" aria-label="Title" placeholder="Title" maxlength="500" :readonly="readonly"
        v-model="title" @input="typed" @keydown.enter.prevent="$refs.area.focus()" />
      <p class="u-note-state u-small" :class="{ 'u-error': bad }" :role="bad ? 'alert' : null" data-state>{{ told }}</p>
      <textarea ref="area" class="u-note-text" aria-label="Text of the note, in Markdown" spellcheck="true"
        placeholder="Write in Markdown. [[Title]] links to another note, #word is a tag." :readonly="readonly"
        aria-autocomplete="list" :aria-controls="titles.length ? listId : null"
        :aria-activedescendant="titles.length ? listId + '-' + chosen : null"
        v-model="text" @input="typed" @keydown="completing" @focus="placed = true" @blur="close" @click="close" @scroll="close"></textarea>
      <ul v-if="titles.length" :id="listId" class="u-titles" role="listbox" aria-label="Notes to link to" :style="place">
        <li v-for="(each, at) in titles" :id="listId + '-' + at" role="option" :aria-selected="at === chosen ? 'true' : 'false'"
          @mousedown.prevent="choose(at)" @mousemove="chosen = at">{{ each }}</li>
      </ul>
      <p class="u-hidden" role="status">{{ titles.length ? titles.length + (titles.length === 1 ? " note" : " notes") + " to link to. Arrow keys choose, Enter links." : "" }}</p>
    </div>`,
  props: { note: String, initialTitle: String, initialText: String, seen: String, kept: Boolean, limit: Number, readonly: Boolean },
  data() {
    return { title: this.initialTitle, text: this.initialText, base: this.seen, serial: 0, sent: 0, state: "saved", isKept: this.kept, why: "",
      titles: [], chosen: 0, place: {}, placed: false };
  },
  computed: {
    listId() {
      return `titles-${this.note}`;
    },
    bad() {
      return this.state === "failed" || this.state === "conflict";
    },
    told() {
      if (this.readonly) return "Read only. What is shown is the beginning.";
      return {
        saved: this.isKept ? "Saved" : "Not kept yet",
        typing: "Not saved yet…",
        saving: "Saving…",
        offline: "Not saved: the connection is lost. Your text is kept in this browser.",
        failed: `Not saved: ${this.why}`,
        conflict: "Not saved: the note has been changed elsewhere. Choose above.",
      }[this.state];
    },
  },
  mounted() {
    this.onFocus = () => this.$emit("look", this.serial === this.sent && this.state === "saved" ? this.serial : null);
    if (this.readonly) return;
    this.retry = setInterval(this.flush, RETRY_MS);
    this.onHide = () => document.visibilityState === "hidden" && this.flush(true);
    document.addEventListener("visibilitychange", this.onHide);
    window.addEventListener("focus", this.onFocus);
    this.onLeave = () => {
      if (this.title.trim() || this.text) return;
      this.flush(true);
      this.$emit("leave");
    };
    window.addEventListener("pagehide", this.onLeave);
    this.onResize = () => this.titles.length && this.moveToCursor();
    window.addEventListener("resize", this.onResize);
    // Another tab with this note keeps its text under the same name. What stands here and is not saved must outlast that.
    this.onStorage = (event) => event.key === KEY + this.note && event.newValue === null && this.state !== "saved" && this.keep();
    window.addEventListener("storage", this.onStorage);
    this.offerDraft();
    this.onFocus(); // a save of the page before this one may have come after the note was read for it
    if (!this.title && !this.text) this.$el.querySelector(".u-note-title").focus();
  },
  beforeUnmount() {
    clearInterval(this.retry);
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onHide);
    window.removeEventListener("focus", this.onFocus);
    window.removeEventListener("pagehide", this.onLeave);
    window.removeEventListener("resize", this.onResize);
    window.removeEventListener("storage", this.onStorage);
  },
  methods: {
    // -- typing
    typed(event) {
      // Half a character, which a cut of other programs leaves, cannot be sent.
      for (const name of ["title", "text"]) if (this[name].isWellFormed?.() === false) this[name] = this[name].toWellFormed();
      if (event?.target === this.$refs.area) this.complete();
      this.serial += 1;
      this.keep();
      if (this.state === "conflict") return;
      this.state = "typing";
      const now = performance.now();
      this.since ??= now;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.flush(true), Math.max(0, Math.min(IDLE_MS, this.since + LONGEST_MS - now)));
    },
    flush(due) {
      if (this.serial === this.sent || this.state === "conflict") return;
      const again = this.state === "offline" || (this.state === "failed" && performance.now() > this.retryAt);
      if (due !== true && !again) return;
      if (this.text.length > this.limit) {
        this.fail(`a note of more than ${this.limit.toLocaleString("en")} characters cannot be saved here. Split it, or put the text into a .md file and import that: so long a note comes in, and is changed, by way of a file.`, true);
        return;
      }
      if (!window.did_handshake || !window.socket?.connected) {
        this.state = "offline";
        return;
      }
      this.since = undefined;
      this.sent = this.serial;
      this.state = "saving";
      this.sentAt = performance.now();
      this.$emit("edit", { serial: this.serial, title: this.title, text: this.text, seen: this.base });
      clearTimeout(this.answer);
      // Sent into a connection that had just died: send it once more.
      this.answer = setTimeout(() => this.state === "saving" && this.again(), 5000);
    },
    again() {
      this.sent = -1;
      this.state = "offline";
    },
    // -- [[ completes titles
    // What stands between the last [[ and the cursor; none if no link is being typed.
    begun() {
      const area = this.$refs.area;
      if (area.selectionStart !== area.selectionEnd) return null;
      const line = area.value.slice(Math.max(0, area.selectionStart - LONGEST_BEGINNING - 2), area.selectionStart);
      return line.match(/\[\[([^[\]|#\n]*)$/)?.[1] ?? null;
    },
    complete() {
      const beginning = this.begun();
      if (beginning === null) return this.close();
      this.asked = beginning;
      clearTimeout(this.asking);
      this.asking = setTimeout(() => this.$emit("complete", { beginning }), COMPLETE_MS);
    },
    // Too late when something else has been typed meanwhile.
    offer(beginning, titles) {
      if (beginning !== this.asked || this.begun() !== beginning) return;
      [this.titles, this.chosen] = [titles, 0];
      if (titles.length) this.moveToCursor();
    },
    close() {
      clearTimeout(this.asking);
      this.asked = null;
      this.titles = [];
    },
    completing(event) {
      if (!this.titles.length || event.isComposing) return;
      const count = this.titles.length;
      if (event.key === "ArrowDown") this.chosen = (this.chosen + 1) % count;
      else if (event.key === "ArrowUp") this.chosen = (this.chosen + count - 1) % count;
      else if (event.key === "Enter" || event.key === "Tab") this.choose(this.chosen);
      else if (event.key === "Escape") this.close();
      else return (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key)) && this.close();
      this.$nextTick(() => this.$el.querySelector(".u-titles [aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
      event.preventDefault();
      event.stopPropagation();
    },
    choose(at) {
      const [title, beginning, area] = [this.titles[at], this.begun(), this.$refs.area];
      this.close();
      if (beginning === null) return;
      const end = area.selectionStart;
      const closed = area.value.startsWith("]]", end) ? 2 : 0;
      area.setSelectionRange(end - beginning.length, end + closed);
      if (!document.execCommand("insertText", false, `${title}]]`)) {
        area.setRangeText(`${title}]]`, end - beginning.length, end + closed, "end");
        this.text = area.value;
        this.typed();
      }
    },
    // A textarea does not tell where its cursor is: a copy of its text up to there does.
    moveToCursor() {
      const [area, copy, mark] = [this.$refs.area, document.createElement("div"), document.createElement("span")];
      const style = getComputedStyle(area);
      for (const name of ["font", "letterSpacing", "lineHeight", "padding", "border", "boxSizing", "tabSize"]) copy.style[name] = style[name];
      Object.assign(copy.style, {
        position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", overflowWrap: "break-word", width: `${area.clientWidth}px`,
      });
      copy.textContent = area.value.slice(0, area.selectionStart);
      copy.append(mark);
      area.parentElement.append(copy);
      const [x, y, line] = [mark.offsetLeft, mark.offsetTop - area.scrollTop, parseFloat(style.lineHeight)];
      copy.remove();
      if (y < 0 || y + line / 2 > area.clientHeight) return this.close(); // a smaller window has put the cursor out of sight
      const left = area.offsetLeft + Math.max(0, Math.min(x, area.clientWidth - LIST_PX));
      const above = area.getBoundingClientRect().top + y - 2 * GAP_PX;
      const below = window.innerHeight - above - line - 4 * GAP_PX;
      this.place = below >= LIST_PX || below >= above
        ? { left: `${left}px`, top: `${area.offsetTop + y + line + GAP_PX}px`, maxHeight: `${below}px` }
        : { left: `${left}px`, bottom: `${area.parentElement.clientHeight - area.offsetTop - y + GAP_PX}px`, maxHeight: `${above}px` };
    },
    // -- what the server says
    saved(serial, seen, title) {
      this.base = seen;
      if (serial !== this.serial) {
        this.keep();
        if (this.state === "saving") this.state = "typing";
        return;
      }
      clearTimeout(this.answer);
      this.state = "saved";
      this.isKept = true;
      if (document.activeElement !== this.$el.querySelector(".u-note-title")) this.title = title;
      this.forget();
    },
    // Tried again now and then, unless that is in vain.
    fail(why, forGood) {
      this.why = why;
      this.state = "failed";
      this.sent = -1;
      this.retryAt = forGood ? Infinity : performance.now() + FAILED_MS;
    },
    conflict() {
      this.state = "conflict";
      this.keep();
    },
    check() {
      this.onFocus();
    },
    // What has been typed since the server was told that all is saved stays, and is offered as after a reload.
    load(title, text, seen, serial) {
      if (typeof serial === "number" && serial !== this.serial) {
        this.state = "conflict";
        return this.$emit("draft", { unchanged: false });
      }
      const area = this.$refs.area;
      const [start, end, top] = [area.selectionStart, area.selectionEnd, area.scrollTop];
      [this.title, this.text, this.base] = [title, text, seen];
      this.sent = this.serial;
      this.state = "saved";
      this.forget();
      this.$nextTick(() => {
        area.setSelectionRange(Math.min(start, text.length), Math.min(end, text.length));
        area.scrollTop = top;
      });
    },
    // As it stands: selection in characters, not in UTF-16 units.
    current() {
      const area = this.$refs.area;
      const count = (until) => Array.from(this.text.slice(0, until)).length;
      return {
        serial: this.serial, title: this.title, text: this.text,
        start: count(area.selectionStart), end: count(area.selectionEnd), placed: this.placed,
      };
    },
    resend() {
      this.sent = -1;
      this.state = "typing";
      this.flush(true);
    },
    // Puts a whole new text in the place of the old one, as one step that Ctrl+Z takes back.
    apply(serial, text, cursor) {
      if (serial !== this.serial) return false;
      const [old, area] = [this.text, this.$refs.area];
      let [head, tail] = [0, 0];
      while (head < old.length && head < text.length && old[head] === text[head]) head += 1;
      const most = Math.min(old.length, text.length) - head;
      while (tail < most && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail += 1;
      area.focus();
      area.setSelectionRange(head, old.length - tail);
      const middle = text.slice(head, text.length - tail);
      if (middle ? !document.execCommand("insertText", false, middle) : !document.execCommand("delete")) {
        area.setRangeText(middle);
        this.text = area.value;
        this.typed();
      }
      const at = Array.from(text).slice(0, cursor).join("").length;
      area.setSelectionRange(at, at);
      return true;
    },
    // -- drafts in this browser
    keep() {
      this.mine = JSON.stringify({ title: this.title, text: this.text, seen: this.base });
      try {
        localStorage.setItem(KEY + this.note, this.mine);
      } catch {
        // The browser's store is full or forbidden: what is typed is saved on the server all the same.
      }
    },
    // Only what was kept here: another tab may have kept its own text since.
    forget() {
      try {
        if (localStorage.getItem(KEY + this.note) === this.mine) localStorage.removeItem(KEY + this.note);
      } catch {}
    },
    offerDraft() {
      let draft = null;
      try {
        this.mine = localStorage.getItem(KEY + this.note);
        draft = JSON.parse(this.mine);
      } catch {}
      if (typeof draft?.text !== "string" || typeof draft.title !== "string") return;
      if (draft.text === this.text && draft.title === this.title) return this.forget();
      const unchanged = draft.seen === this.base || !this.isKept; // there is no other text
      if (unchanged) {
        [this.title, this.text] = [draft.title, draft.text];
        this.typed();
      } else {
        this.state = "conflict";
        [this.title, this.text] = [draft.title, draft.text];
        this.serial += 1;
      }
      this.$emit("draft", { unchanged });
    },
  },
};
