// The deck under mouse, touch and keys. The server is told which card went which way; the picture does not wait for it.
(() => {
  const FAR_PX = 90;
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const top = () => document.querySelector(".u-deck-card[data-card]");
  const elsewhere = (target) =>
    document.querySelector(".q-dialog, .q-menu") !== null ||
    target.closest("input, textarea, select, [contenteditable], .q-select") !== null;

  const fly = (card, side) => {
    if (calm()) return;
    const box = card.getBoundingClientRect();
    const ghost = card.cloneNode(true);
    ghost.querySelectorAll("[id]").forEach((part) => part.removeAttribute("id"));
    ghost.removeAttribute("id");
    ghost.removeAttribute("data-card");
    ghost.setAttribute("aria-hidden", "true");
    ghost.inert = true;
    Object.assign(ghost.style, {
      position: "fixed", left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px`,
      margin: "0", zIndex: 3000, pointerEvents: "none", transform: "none",
    });
    document.body.append(ghost);
    ghost
      .animate(
        [{ transform: "none", opacity: 1 },
         { transform: `translateX(${side * Math.max(360, innerWidth * 0.6)}px) rotate(${side * 10}deg)`, opacity: 0 }],
        { duration: 280, easing: "cubic-bezier(.3,.1,.6,1)" },
      )
      .finished.finally(() => ghost.remove());
  };

  const act = (deed) => {
    // What is pressed before the first connection is sent with it.
    if (window.did_handshake && !window.socket?.connected) return;
    if (deed === "undo") return emitEvent("uniun_deck", { deed });
    const card = top();
    if (!card || card.dataset.gone) return;
    card.dataset.gone = "1";
    fly(card, deed === "keep" ? 1 : -1);
    card.style.visibility = "hidden";
    // Should the server refuse, it says why and draws the card again; should it not answer, the card comes back.
    setTimeout(() => {
      if (card.isConnected) { card.style.visibility = ""; delete card.dataset.gone; lean(card, 0); }
    }, 3000);
    emitEvent("uniun_deck", { deed, card: card.dataset.card });
  };

  const lean = (card, dx) => {
    card.style.transform = dx ? `translateX(${dx}px) rotate(${dx / 40}deg)` : "";
    card.dataset.side = dx > 30 ? "keep" : dx < -30 ? "drop" : "";
    card.style.setProperty("--lean", Math.min(1, Math.abs(dx) / FAR_PX).toFixed(2));
  };

  let drag = null;
  document.addEventListener("pointerdown", (event) => {
    const card = event.target.closest?.(".u-deck-card[data-card]");
    if (!card || event.button !== 0 || event.target.closest("a, button")) return;
    drag = { card, id: event.pointerId, x: event.clientX, y: event.clientY, held: false };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const dx = event.clientX - drag.x;
    if (!drag.held) {
      if (Math.abs(dx) < 8) return;
      if (event.pointerType === "mouse" && String(getSelection())) getSelection().removeAllRanges();
      drag.held = true;
      drag.card.setPointerCapture(drag.id);
      drag.card.classList.add("u-held");
    }
    lean(drag.card, dx);
  });
  const release = (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const { card, held, x } = drag;
    drag = null;
    card.classList.remove("u-held");
    if (!held) return;
    const dx = event.clientX - x;
    if (event.type === "pointerup" && Math.abs(dx) >= FAR_PX) act(dx > 0 ? "keep" : "drop");
    else lean(card, 0);
  };
  document.addEventListener("pointerup", release);
  document.addEventListener("pointercancel", release);

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-deed]");
    if (button && document.querySelector(".u-deck")) act(button.dataset.deed);
  });
  document.addEventListener("keydown", (event) => {
    if (!document.querySelector(".u-deck") || event.altKey || elsewhere(event.target)) return;
    const undo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key === "z";
    if (undo || (event.key === "u" && !event.ctrlKey && !event.metaKey)) act("undo");
    else if (event.ctrlKey || event.metaKey) return;
    else if (event.key === "ArrowRight") act("keep");
    else if (event.key === "ArrowLeft") act("drop");
    else if (event.key === "o" || event.key === "?") emitEvent("uniun_deck", { deed: event.key === "o" ? "notes" : "help" });
    else return;
    event.preventDefault();
  });
})();
