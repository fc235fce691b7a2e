"""Other programs that ask in the place of a conversation."""

CROWD = """async ([model, flow, number]) => {
    window.crowd = new AbortController();
    const ask = () => fetch("/v1/chat/completions", {
        method: "POST",
        signal: window.crowd.signal,
        headers: {"Content-Type": "application/json"},
        body: JSON.stringify({
            model, max_tokens: 3000, metadata: {kind: "chat", flow},
            messages: [{role: "user", content: "Say: " + "river ".repeat(3000)}],
        }),
    }).then(answer => answer.text()).then(ask, () => undefined);
    for (let each = 0; each < number; each++) ask();
    for (let tries = 0; tries < 1200; tries++) {
        const now = await (await fetch("/scheduler")).json();
        if ((now.tiers[0] ?? []).filter(job => job.flow === flow).length === number - 1) return;
        await new Promise(done => setTimeout(done, 50));
    }
    throw new Error("the others do not wait");
}"""
"""Script; with the model, the conversation, and how many (a browser sends six). They ask again and again until
`window.crowd.abort()`."""
GONE = """async () => {
    window.crowd.abort();
    for (let tries = 0; tries < 1200; tries++) {
        const now = await (await fetch("/scheduler")).json();
        if (!now.running && !(now.tiers[0] ?? []).length) return;
        await new Promise(done => setTimeout(done, 50));
    }
    throw new Error("the others stay");
}"""
"""Script; they go, and the server knows it."""
