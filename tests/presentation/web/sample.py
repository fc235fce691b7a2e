"""A library as somebody has it after some weeks."""

from dependency_injector.containers import DeclarativeContainer

_NOTES = {
    "Sourdough": "# Starter\n\nFeed it every morning, 1:5:5. See [[Rye bread]].\n\n- flour\n- water",
    "Rye bread": "Needs a [[Sourdough]] starter. Bake at 230 °C for 45 minutes.",
    "Bees in March": "First flight at 12 °C. The willow blooms; they bring pollen.",
    "Willow": "Salix. Blooms early, roots in wet ground. *Cut it in winter.*",
    "Reading list": "1. The Overstory\n2. Braiding Sweetgrass\n3. Entangled Life",
    "Mycorrhiza": "Fungi and roots trade sugar for phosphorus.\n\n```python\ndef trade(sugar):\n    return sugar / 7\n```",
}


async def fill(container: DeclarativeContainer) -> None:
    """Notes with tags and links, and a Manas."""
    notes = container.notes_controller()
    for title, text in _NOTES.items():
        await notes.add(text, title=title, tags=["garden" if "root" in text else "kitchen"])
    manases = container.manas_controller()
    await manases.create("Garden")
    await manases.add("Garden", [], tag="garden")
