export default {
  template: `<div></div>`,
  props: { blocks: Array },
  mounted() {
    this.patch(0, this.blocks);
  },
  methods: {
    patch(first, blocks) {
      const root = this.$el;
      const thread = root.closest(".u-thread");
      const follows = thread && thread.scrollHeight - thread.scrollTop - thread.clientHeight < 80;
      while (root.childElementCount > first + blocks.length) root.lastElementChild.remove();
      blocks.forEach((html, at) => {
        let node = root.children[first + at];
        if (!node) {
          node = document.createElement("div");
          node.className = "u-block";
          root.append(node);
        }
        if (node.drawn === html) return;
        node.setHTML(html); // NiceGUI's, which is DOMPurify
        node.drawn = html;
      });
      if (follows) thread.scrollTop = thread.scrollHeight;
    },
  },
};
