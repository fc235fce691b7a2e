"""Other programs that ask in the place of a conversation."""

CROWD = """async ([model, flow, number]) => {
    window.crowd = new AbortController();
    for (let each = 0; each < number; each++)
        fetch("/v1/chat/completions", {
            method: "POST",
            signal: window.crowd.signal,
            headers: {"Content-Type": "application/json"},
            body: JSON.stringify({
                model, max_tokens: 1000, metadata: {kind: "chat", flow},
                messages: [{role: "user", content: "Say: " + "river ".repeat(1000)}],
            }),
        }).catch(() => undefined);
    for (let tries = 0; tries < 200; tries++) {
        const now = await (await fetch("/scheduler")).json();
        if (now.running && Object.values(now.queued).reduce((sum, waiting) => sum + waiting, 0) >= number - 1) return;
        await new Promise(done => setTimeout(done, 50));
    }
    throw new Error("the others do not wait");
}"""
"""Script; with the model, the conversation, and how many (a browser sends six). They go on until `window.crowd.abort()`."""
