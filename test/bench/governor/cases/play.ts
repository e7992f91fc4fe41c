/** One run of a case in virtual time. Each random stream has a seed of the case's name and the run's, so that no other run changes a draw. */
import type { Random } from '../../../../src/platform/clock.ts';
import { DEADLINE_MS } from '../client.ts';
import { createRandom } from '../seeded.ts';
import { VirtualClock } from '../virtual-clock.ts';
import type { Batch, Case, OpenLoad } from './cases.ts';
import { type CaseClient, type ClientName, createClient } from './clients.ts';
import { countPossible, countPossibleUntil } from './possible-calls.ts';
import type { Server, ServerResponse } from './servers.ts';

/** Attempts are counted in spans of this length, by the time at which they arrive at the server. */
export const SPAN_MS = 300_000;

/** What happened in a span. */
export interface Span {
  /** Attempts with an accepted response before the caller's deadline. */
  accepted: number;
  refused: number;
  attempts: number;
}

export interface RunRecord {
  readonly spans: readonly Span[];
  readonly calls: number;
  /** Calls whose callers got no accepted response. */
  readonly failed: number;
  /** Accepted calls that the load and the limit allow. */
  readonly possible: number;
}

export interface RunJob {
  readonly name: string;
  readonly client: ClientName;
  readonly seed: number;
  /** Other draws for the same seeds. */
  readonly seedText: string;
}

/** After the end of the load, until the last call has ended. */
const LAST_CALLS_MS = 100_000;
/** A worker whose call failed waits before its next. */
const AFTER_FAILURE_MS = 1000;
/** One way, from the shortest time on. */
const LATENCY_MS = 20;
const LATENCY_SPREAD_MS = 20;

export function play(played: Case, { client, seed, seedText }: Omit<RunJob, 'name'>): Promise<RunRecord> {
  const run = new Run(played, client, (purpose) => createRandom(seed, `${purpose} ${played.name} ${seedText}`));
  return run.play();
}

class Run {
  readonly #case: Case;
  readonly #clock = new VirtualClock();
  readonly #client: CaseClient;
  readonly #server: Server;
  readonly #arrivals: Random;
  readonly #latency: Random;
  readonly #spans: Span[];
  readonly #faults: unknown[] = [];
  readonly #arrivedAt: number[] = [];
  #failed = 0;
  /** When a batch was done. */
  #endedAt: number;

  constructor(played: Case, client: ClientName, createSource: (purpose: string) => Random) {
    this.#case = played;
    this.#arrivals = createSource('arrivals');
    this.#latency = createSource('latency');
    this.#server = played.server(createSource('server'));
    const { queueTimeoutMs } = played;
    this.#client = createClient(client, { clock: this.#clock, random: createSource('client'), queueTimeoutMs });
    const spans = Math.ceil(played.durationMs / SPAN_MS);
    this.#spans = Array.from({ length: spans }, () => ({ accepted: 0, refused: 0, attempts: 0 }));
    this.#endedAt = played.durationMs;
  }

  async play(): Promise<RunRecord> {
    const { load, restart, durationMs } = this.#case;
    if (restart !== undefined)
      this.#clock.exactlyAt(restart.atMs, () => {
        this.#client.restart(restart.keepsState);
      });
    if ('perSecond' in load) this.#arriveAfter(0, load);
    else this.#startWorkers(load);
    await this.#clock.runUntil(durationMs + LAST_CALLS_MS);
    if (this.#faults.length > 0) throw new AggregateError(this.#faults, 'calls ended with errors');
    return { spans: this.#spans, calls: this.#arrivedAt.length, failed: this.#failed, possible: this.#countPossible() };
  }

  #arriveAfter(previousAt: number, load: OpenLoad): void {
    const at = previousAt + (-Math.log(1 - this.#arrivals()) * 1000) / load.perSecond;
    if (at >= this.#case.durationMs) return;
    this.#clock.exactlyAt(at, () => {
      void this.#call();
      this.#arriveAfter(at, load);
    });
  }

  #startWorkers({ workers, calls, thinkMs }: Batch): void {
    let left = calls;
    const work = async (): Promise<void> => {
      while (left > 0 && this.#clock.now() < this.#case.durationMs) {
        const isServed = await this.#call();
        if (isServed) left--;
        if (left === 0) this.#endedAt = Math.min(this.#endedAt, this.#clock.now());
        await this.#clock.sleepUntil(this.#clock.now() + (isServed ? thinkMs : AFTER_FAILURE_MS));
      }
    };
    for (let worker = 0; worker < workers; worker++) void work();
  }

  async #call(): Promise<boolean> {
    const now = this.#clock.now();
    this.#arrivedAt.push(now);
    const deadlineAt = now + (this.#case.deadlineMs ?? DEADLINE_MS);
    let isServed = false;
    try {
      isServed = await this.#client.call(deadlineAt, () => this.#send(deadlineAt));
    } catch (error) {
      this.#faults.push(error);
    }
    if (!isServed) this.#failed++;
    return isServed;
  }

  #send(deadlineAt: number): Promise<ServerResponse | undefined> {
    const clock = this.#clock;
    return new Promise((resolve) => {
      clock.runWithoutSettlingAt(clock.now() + this.#drawLatencyMs(), () => {
        const at = clock.now();
        const response = this.#server(at);
        const backAt = at + response.serviceMs + this.#drawLatencyMs();
        const isInTime = backAt <= deadlineAt;
        this.#count(at, response.status, isInTime);
        clock.exactlyAt(isInTime ? backAt : deadlineAt, () => {
          resolve(isInTime ? response : undefined);
        });
      });
    });
  }

  #drawLatencyMs(): number {
    return LATENCY_MS + this.#latency() * LATENCY_SPREAD_MS;
  }

  #count(at: number, status: number, isInTime: boolean): void {
    const span = this.#spans[Math.floor(at / SPAN_MS)];
    if (span === undefined) return;
    span.attempts++;
    if (status === 429) span.refused++;
    else if (isInTime) span.accepted++;
  }

  #countPossible(): number {
    const { limit, load, durationMs, deadlineMs = DEADLINE_MS } = this.#case;
    if (limit === undefined) return this.#arrivedAt.length;
    if ('workers' in load) return countPossibleUntil(limit, this.#endedAt);
    return countPossible(limit, this.#arrivedAt, deadlineMs, durationMs);
  }
}
