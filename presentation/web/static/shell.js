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
