const kept = (key) => `uniun-draft:${key}`;
const joined = (...texts) => texts.filter(Boolean).join("\n");
// Where one types on the screen, Enter is a new line. Who has neither mouse nor screen to touch sends with it.
const touched = () => matchMedia("(pointer: coarse)").matches;

export default {
  template: `
    <form class="u-composer" @submit.prevent="send">
      <div v-if="editing" class="u-editing">
        <span>Asking differently; the first way stays on its own branch.</span>
        <button type="button" class="u-link" @click="cancelEdit">Cancel</button>
      </div>
      <p v-if="branching && !editing" class="u-editing" role="status">What you write next begins a new branch here. What followed stays, under “Branches”.</p>
      <p v-if="note" class="u-editing" role="alert">{{ note }}</p>
      <div class="u-composer-box">
        <textarea ref="box" rows="1" v-model="text" :aria-label="label" :placeholder="label + '…'"
          :maxlength="longest" @input="typed" @keydown="key" enterkeyhint="send"></textarea>
        <button v-if="busy" type="button" class="u-send u-stop" aria-label="Stop the answer" title="Stop (Esc)"
          @click="$emit('stop')"><span class="u-stop-mark"></span></button>
        <button v-else type="submit" class="u-send" aria-label="Send" title="Send (Enter)"
          :disabled="!text.trim() || sent !== null"><i class="q-icon material-icons" aria-hidden="true">arrow_upward</i></button>
      </div>
    </form>`,
  props: { draft_key: String, label: String, longest: Number, busy: Boolean, waits: Boolean, branching: Boolean },
  emits: ["send", "stop", "typing"],
  data: () => ({ text: "", editing: null, sent: null, note: "", before: "", told_at: -Infinity }),
  mounted() {
    this.key_of_draft = this.draft_key;
    this.text = localStorage.getItem(kept(this.key_of_draft)) ?? "";
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
      this.note = "";
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
      if (!this.text.trim() || this.sent) return;
      if (this.busy || this.waits) {
        this.note = this.waits
          ? "Another program is writing an answer here. Send this when it has ended."
          : "An answer is being written. Send this when it has ended, or stop it.";
        return;
      }
      if (!window.socket?.connected) {
        this.note = "There is no connection at the moment. Your text is kept; send it when it is back.";
        return;
      }
      this.sent = { text: this.text, editing: this.editing };
      this.$emit("send", { ...this.sent });
      this.text = this.editing ? this.before : "";
      this.editing = null;
      this.keep();
      this.$nextTick(this.grow);
    },
    // For a reload: what is being typed, and before it what was sent and may not have been taken yet.
    keep() {
      const text = joined(this.sent?.text, this.editing ? this.before : this.text);
      if (text) localStorage.setItem(kept(this.key_of_draft), text);
      else localStorage.removeItem(kept(this.key_of_draft));
    },
    accepted(draft_key) {
      localStorage.removeItem(kept(this.key_of_draft));
      this.key_of_draft = draft_key;
      this.sent = null;
      this.keep();
      this.told_at = -Infinity;
    },
    // It comes back, before what has been typed since.
    refused() {
      const { text, editing } = this.sent ?? {};
      this.sent = null;
      if (this.editing) this.before = joined(text, this.before);
      else if (editing) [this.editing, this.before, this.text] = [editing, this.text, text];
      else this.text = joined(text, this.text);
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
      this.$nextTick(() => {
        this.grow();
        this.$refs.box.focus();
      });
    },
    cancelEdit() {
      this.editing = null;
      this.text = this.before;
      this.$nextTick(this.grow);
      this.$refs.box.focus();
    },
  },
};
