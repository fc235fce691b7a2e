// Tells the server whether this page is seen, and that it is alive. The server clears a page that falls silent.
(() => {
  const BEAT_MS = 1500;
  const tell = (turned_to) => {
    if (!window.did_handshake || !window.socket?.connected) return;
    emitEvent("uniun_seen", { visible: document.visibilityState === "visible", turned_to });
  };
  let touched = 0;
  const touch = () => {
    const now = performance.now();
    if (now - touched < BEAT_MS) return;
    touched = now;
    tell(true);
  };
  document.addEventListener("visibilitychange", () => tell(document.visibilityState === "visible"));
  window.addEventListener("focus", () => tell(true));
  window.addEventListener("pageshow", () => tell(true));
  window.addEventListener("pagehide", () => {
    if (window.did_handshake) emitEvent("uniun_seen", { visible: false, turned_to: false });
  });
  document.addEventListener("pointerdown", touch, { passive: true });
  document.addEventListener("keydown", touch);
  setInterval(() => tell(false), BEAT_MS);
})();

// Rendered Markdown: its copy buttons, and its links, which lead into a tab of their own.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".u-copy");
  if (button) {
    const code = button.closest(".u-code")?.querySelector("code");
    if (code) copyText(code.textContent, button);
    return;
  }
  const link = event.target.closest?.(".u-prose a[href]");
  if (link && /^https?:/.test(link.getAttribute("href"))) {
    event.preventDefault();
    window.open(link.href, "_blank", "noopener,noreferrer");
  }
});

// Says for a moment on the button itself how it went.
async function copyText(text, button) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = "Not allowed";
  }
  if (!button) return;
  const before = button.dataset.label ?? button.textContent;
  button.dataset.label = before;
  button.textContent = said;
  setTimeout(() => (button.textContent = before), 1500);
}

// What NiceGUI says when the server does not answer, in words that help: it was stopped, as a rule, by who reads this.
(() => {
  const [what, then] = document.querySelectorAll("#popup > span");
  if (!then) return;
  what.textContent = "UNIUN was stopped, or cannot be reached.";
  then.textContent =
    "What you typed in a chat or a note is kept in this browser. To start UNIUN again: make run, or uniun serve. This page then goes on by itself.";
})();
