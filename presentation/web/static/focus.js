// A list that is drawn again keeps the keyboard's focus where it was: on the control of the same name.
(() => {
  const nameOf = (element) => element.getAttribute?.("aria-label") || element.dataset?.deed || null;
  let focused = null;
  let name = null;
  document.addEventListener("focusin", (event) => {
    focused = event.target;
    name = nameOf(focused);
  });
  document.addEventListener("focusout", (event) => {
    const left = event.target;
    setTimeout(() => {
      if (left === focused && left.isConnected && document.activeElement !== left) name = null;
    });
  });
  new MutationObserver(() => {
    if (!name || !focused || focused.isConnected || document.activeElement !== document.body) return;
    const again = [...document.querySelectorAll("[aria-label], [data-deed]")].find((one) => nameOf(one) === name);
    if (again) again.focus({ preventScroll: true });
  }).observe(document.body ?? document.documentElement, { childList: true, subtree: true });
})();
