/**
 * Bodies of every size and framing, cut into packets anywhere and with pauses between them, while the request waits at any of the stages:
 * both directions, and messages that are never completed. A long form is `npm run soak:bodies`.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLatch } from '../composition/in-process.ts';
import { headerOf } from '../support/raw-response.ts';
import type { ReceivedResponse } from '../support/raw-response.ts';
import { FAILS_WHEN_HANGING } from '../support/rounds.ts';
import { waitUntil } from '../support/until.ts';
import { findResponseAlteration } from '../support/witness-client.ts';
import { FRAMINGS, IncrementalDigest, DIGEST_HEADER } from '../support/witness.ts';
import { PacketClient, encodeRequest } from './packets.ts';
import type { SentRequest } from './packets.ts';
import { STAGES, startStaged } from './stages.ts';
import type { Stage, Staged } from './stages.ts';

const KIB = 1024;
const REPLAY_BUFFER_BYTES = KIB * KIB;
/** Sizes at which something else begins: of a read, of a high-water mark, of the replay buffer. */
const EDGES = [0, 1, 16 * KIB, 64 * KIB, 128 * KIB, REPLAY_BUFFER_BYTES, 3_000_000];
const TOKEN_RUNS = 40;

type Planned = Omit<SentRequest, 'id'>;

interface Conversation {
  readonly requests: readonly Planned[];
  readonly isPipelined: boolean;
  /** Where packets end, in parts of the whole. */
  readonly cuts: readonly number[];
  /** Turns of the event loop between packets. */
  readonly turns: number;
  /** After which packet the wait ends, in parts of all; 1 = when everything has been sent. */
  readonly releasedAfter: number;
}

const aroundEdge = fc
  .tuple(fc.constantFrom(...EDGES), fc.integer({ min: -2, max: 2 }))
  .map(([edge, beside]) => Math.min(3_000_000, Math.max(0, edge + beside)));
const part = fc.integer({ min: 0, max: 1000 }).map((mille) => mille / 1000);
const bodyBytes = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 200_000 }) },
  { weight: 3, arbitrary: aroundEdge },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 3_000_000 }) },
);
/** One-byte chunks only of a small body: each of them costs six bytes more and a call. */
const chunkSizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 500, max: 70_000 })), {
  minLength: 1,
  maxLength: 4,
});
const request = fc
  .record({
    method: fc.constantFrom('POST', 'PUT'),
    requestBytes: bodyBytes,
    chunks: fc.option(chunkSizes, { nil: undefined }),
    expectsContinue: fc.boolean(),
    responseBytes: bodyBytes,
    replyFraming: fc.constantFrom(...FRAMINGS),
  })
  .map(({ chunks, ...plan }): Planned => {
    const sizes = chunks !== undefined && plan.requestBytes > 20_000 ? chunks.map((size) => size + 499) : chunks;
    return { ...plan, ...(sizes === undefined ? {} : { chunkSizes: sizes }) };
  });
const conversation: fc.Arbitrary<Conversation> = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 3 }),
  isPipelined: fc.boolean(),
  cuts: fc.array(part, { maxLength: 6 }),
  turns: fc.integer({ min: 1, max: 3 }),
  releasedAfter: fc.oneof({ weight: 2, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: part }),
});

/** A body in three packets that lies unread as a whole when its wait ends: what is tried first at every stage. */
const EXAMPLES = [3000, 30_000].map((requestBytes): [Conversation] => [
  {
    requests: [{ method: 'POST', requestBytes, responseBytes: 100, responseFraming: 'length' }],
    isPipelined: false,
    cuts: [0.5, 0.75],
    turns: 3,
    releasedAfter: 1,
  },
]);

let runs = 0;

/** Sends all requests on one connection and ends the stage's wait on the way. @returns what each got */
async function converse(
  url: string,
  stage: Stage,
  plan: Conversation,
  release: () => void,
): Promise<(readonly [SentRequest, ReceivedResponse | undefined])[]> {
  const run = ++runs;
  const requests = plan.requests.map((each, index): SentRequest => ({
    ...each,
    id: `${stage}-${String(run)}-${String(index)}`,
  }));
  using client = await PacketClient.connect(url);
  const sender = new Sender(client, plan, release);
  for (const [index, each] of requests.entries()) {
    client.reader.expect(each.method);
    await sender.send(each, index);
    if (!plan.isPipelined) await sender.response(index);
  }
  const responses: (ReceivedResponse | undefined)[] = [];
  for (const index of requests.keys()) responses.push(await sender.response(index));
  return requests.map((each, index) => [each, responses[index]] as const);
}

class Sender {
  readonly #client: PacketClient;
  readonly #plan: Conversation;
  readonly #release: () => void;
  #isReleased = false;

  constructor(client: PacketClient, plan: Conversation, release: () => void) {
    this.#client = client;
    this.#plan = plan;
    this.#release = release;
  }

  async send(each: SentRequest, index: number): Promise<void> {
    const { head, body } = encodeRequest(each);
    if (each.expectsContinue !== true) {
      await this.#write(Buffer.concat([head, body]));
      return;
    }
    await this.#write(head);
    // No client gets a 100 before its turn.
    this.#end();
    await this.#client.permission(index);
    await this.#write(body);
  }

  response(index: number): Promise<ReceivedResponse | undefined> {
    this.#end();
    return this.#client.response(index);
  }

  async #write(bytes: Buffer): Promise<void> {
    const { cuts, turns, releasedAfter } = this.#plan;
    const ends = [...cuts.map((part) => Math.round(part * bytes.length)).sort((a, b) => a - b), bytes.length];
    let at = 0;
    for (const [packet, end] of ends.entries()) {
      if (packet / ends.length >= releasedAfter) this.#end();
      // Bytes that are not read yet are not waited for.
      await this.#client.write(bytes.subarray(at, end), this.#isReleased);
      at = end;
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
    }
  }

  #end(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#release();
  }
}

/** What is wrong with what a client got. */
function faultsOf(
  stage: Stage,
  exchanged: readonly (readonly [SentRequest, ReceivedResponse | undefined])[],
): string[] {
  const faults: string[] = [];
  for (const [sent, response] of exchanged) {
    if (response === undefined) {
      faults.push(`${sent.id}: no complete response`);
      continue;
    }
    const received = new IncrementalDigest().add(response.body);
    if (response.status !== 200) {
      if (!mayFail(stage, sent, response))
        faults.push(`${sent.id}: ${String(response.status)} ${response.body.toString()}`);
      continue;
    }
    const alteration = findResponseAlteration(sent, headerOf(response, DIGEST_HEADER), received);
    if (alteration !== undefined) faults.push(alteration);
  }
  return faults;
}

/**
 * A body that is larger than the replay buffer is sent once; a 401 right after a refresh is passed on; after a reset a POST is not sent
 * again, nor more than the retry budget allows.
 */
function mayFail(stage: Stage, { requestBytes }: SentRequest, { status }: ReceivedResponse): boolean {
  if (stage === 'replay-401' && status === 401) return true;
  return stage === 'replay-reset' || (stage.startsWith('replay') && requestBytes > REPLAY_BUFFER_BYTES);
}

/** Everything that either end has found so far; the upstream's books start anew. */
function takeAlterations({ upstream: { stats } }: Staged): string[] {
  return stats.altered.splice(0);
}

describe('invariant 11: a body arrives as it was sent, in any division into packets', () => {
  it.each(STAGES.filter((stage) => stage !== 'token'))('while it waits: %s', async (stage) => {
    const staged = await startStaged();
    await fc.assert(
      fc.asyncProperty(conversation, async (plan) => {
        const exchanged = await converse(staged.url, stage, plan, await staged.enter(stage));
        expect([...faultsOf(stage, exchanged), ...takeAlterations(staged)]).toEqual([]);
      }),
      { examples: EXAMPLES, numRuns: 100, ...FAILS_WHEN_HANGING },
    );
    const { stats } = staged.upstream;
    expect(stats).toMatchObject({ unstated: 0 });
    if (stage.startsWith('replay')) expect(stats.replayed).toBeGreaterThan(0);
  });

  it('while it waits: token', async () => {
    // Each conversation has a sidecar of its own, and each of them listens for warnings.
    process.setMaxListeners(2 * TOKEN_RUNS);
    await fc.assert(
      fc.asyncProperty(conversation, async (plan) => {
        const { opened, open } = createLatch();
        const staged = await startStaged(opened);
        const exchanged = await converse(staged.url, 'token', plan, open);
        expect([...faultsOf('token', exchanged), ...takeAlterations(staged)]).toEqual([]);
        await staged.sidecar.sidecar.drain();
        await staged.upstream[Symbol.asyncDispose]();
      }),
      {
        examples: EXAMPLES,
        numRuns: TOKEN_RUNS,
        ...FAILS_WHEN_HANGING,
      },
    );
  });
});

describe('invariant 11: a body that its client never completes', () => {
  const unfinished = fc.record({
    bytes: fc.oneof(
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 200_000 }),
      fc.integer({ min: 1, max: 3_000_000 }),
    ),
    isChunked: fc.boolean(),
    /** How much of it is sent, in parts. */
    part,
    end: fc.constantFrom('fin' as const, 'reset' as const),
  });
  /** Longer than the replay buffer, so that the upstream receives a part of it. */
  const TO_BREAK_OFF = { bytes: 3_000_000, isChunked: true, part: 0.9, end: 'fin' as const };

  it('is never seen by the upstream, or seen to break off', async () => {
    const staged = await startStaged();
    const { stats } = staged.upstream;
    const buffered = new Set<string>();
    await fc.assert(
      fc.asyncProperty(unfinished, async ({ bytes, isChunked, part, end }) => {
        const id = `unfinished-${String(++runs)}`;
        const sent: SentRequest = {
          id,
          method: 'PUT',
          requestBytes: bytes,
          ...(isChunked ? { chunkSizes: [5000] } : {}),
        };
        const { head, body } = encodeRequest(sent);
        // Of chunks at least the last one is missing.
        const sentBytes = Math.min(Math.floor(part * body.length), body.length - 1);
        if (bytes <= REPLAY_BUFFER_BYTES && !isChunked) buffered.add(id);
        using client = await PacketClient.connect(staged.url);
        client.reader.expect('PUT');
        await client.write(head);
        await client.write(body.subarray(0, sentBytes));
        if (end === 'fin') client.socket.end();
        else client.socket.resetAndDestroy();
        await waitUntil(async () => isIdle(await staged.sidecar.throttle()), 'the request has ended');
      }),
      {
        examples: [[TO_BREAK_OFF]],
        numRuns: 80,
        ...FAILS_WHEN_HANGING,
      },
    );
    await waitUntil(() => stats.brokenOff.length > 0, 'a body that broke off at the upstream');
    expect([...stats.attempts.keys()], 'taken for complete').toEqual([]);
    expect(stats.brokenOff.filter((id) => buffered.has(id))).toEqual([]);
  });
});

function isIdle({ queued, inFlight }: { readonly queued: number; readonly inFlight: number }): boolean {
  return queued + inFlight === 0;
}
