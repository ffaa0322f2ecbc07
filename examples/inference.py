"""A small language model's server on a laptop: joules per request and per token.

Requests overlap: a queue of prompts is served in batches, a step at a time. Each request is a region of its own asyncio
task and counts its tokens, so that ``wattribute run --per tokens`` says what a token took, and ``attribute --share load
--load tokens`` what each request did. The "model" is matrix products of NumPy: prefill multiplies all of a prompt at
once, decode one token of every request that is under way.

    wattribute run -o served.watt --per tokens -- python examples/inference.py --requests 16
    wattribute attribute served.watt --by frame --per tokens
"""

from __future__ import annotations

import argparse
import asyncio
import random

import numpy as np

import wattribute

WIDTH = 256


class Model:
    """Weights, and the two things one does with them."""

    def __init__(self, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.weights = generator.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5

    def step(self, states: np.ndarray, layers: int = 8) -> np.ndarray:
        for _ in range(layers):
            states = np.tanh(states @ self.weights)
        return states


class Server:
    """Serves requests in steps: a prefill for one that is new, a decode for all the others together."""

    def __init__(self, model: Model) -> None:
        self.model, self.running = model, dict[int, asyncio.Queue[np.ndarray]]()
        self.states = dict[int, np.ndarray]()

    async def request(self, number: int, prompt: int, answer: int) -> int:
        """One request: prefill the prompt, then decode so many tokens."""
        with wattribute.region("request"):
            with wattribute.region("prefill"):
                self.states[number] = self.model.step(np.ones((prompt, WIDTH)))[-1]
                wattribute.count("tokens", prompt)
            await asyncio.sleep(0)
            self.running[number] = asyncio.Queue()
            for _ in range(answer):
                with wattribute.region("decode"):
                    self.states[number] = await self.running[number].get()
                    wattribute.count("tokens")
            del self.running[number], self.states[number]
        return answer

    async def decode(self) -> None:
        """The loop of the engine: a step for every request that is under way."""
        while True:
            members = [number for number, queue in self.running.items() if queue.empty()]
            if members:
                made = self.model.step(np.stack([self.states[number] for number in members]))
                for number, state in zip(members, made, strict=True):
                    if number in self.running:
                        self.running[number].put_nowait(state)
            await asyncio.sleep(0)


async def serve(requests: int, seed: int) -> int:
    chosen, server = random.Random(seed), Server(Model(seed))
    engine = asyncio.create_task(server.decode())
    tasks = [
        asyncio.create_task(server.request(n, chosen.randrange(50, 400), chosen.randrange(20, 60)))
        for n in range(requests)
    ]
    tokens = sum(await asyncio.gather(*tasks))
    engine.cancel()
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{asyncio.run(serve(arguments.requests, arguments.seed))} tokens decoded")


if __name__ == "__main__":
    main()
