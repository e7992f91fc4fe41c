/**
 * Replicas that share tokens through a real Redis, and another writer in it. The scripts run by a virtual clock, and virtual time stands
 * still while Redis works.
 */
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { openRedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import type { RedisScriptClient } from '../../../src/fleet/redis/script-client.ts';
import { createRedisTokenStore } from '../../../src/fleet/shared-token/redis-token-store.ts';
import type { SharedTokenStore } from '../../../src/token/store/shared-token-store.ts';
import { startRedis } from '../../support/redis.ts';
import { FleetHarness } from '../../token/store/fleet-harness.ts';
import type { Replica } from '../../token/store/fleet-harness.ts';
import { openClient } from '../harness.ts';

/** Field names and values of a hash. */
export type Fields = ReadonlyMap<string, string>;

/** One call as the API saw it. */
export interface Sending {
  readonly value: string;
  /** Rises each time the replica gets a token, of this value or another. */
  readonly serial: number;
  readonly isAccepted: boolean;
}

const CALL = { arrivedAt: 0 };
const FINE_STEP_MS = 50;
const COARSE_STEP_MS = 2000;
/** After a command to Redis the replicas may still wait for each other. */
const BUSY_MS = 1500;

/** A Redis for one test, and a second connection to write to it. */
export interface HostileRedis {
  readonly client: RedisScriptClient;
  readonly send: (command: readonly string[]) => Promise<unknown>;
}

export async function openHostileRedis(): Promise<HostileRedis> {
  const redis = await startRedis();
  const { client } = openClient({ url: redis.url });
  const writer = await openRedisConnection({
    url: redis.url,
    caFile: undefined,
    timeoutMs: 15_000,
    clock: systemClock,
  });
  onTestFinished(() => writer.destroy());
  await client.whenReady();
  return { client, send: (command) => writer.send(command) };
}

export class HostileFleet {
  readonly fleet = new FleetHarness();
  /** By replica, in order. */
  readonly sent = new Map<Replica, Sending[]>();
  /** Responses with 401 that clients saw. */
  refused = 0;
  /** The API refuses what it does not accept with 401. */
  isAccepted: (value: string) => boolean = () => true;
  /** How far the clock of Redis is ahead of the replicas'. */
  redisSkewMs = Date.now();
  readonly #client: RedisScriptClient;
  readonly #send: HostileRedis['send'];
  readonly #store: SharedTokenStore;
  #pending = 0;
  #commandAt = 0;

  /** @param redis is used by no other fleet at the same time */
  constructor({ client, send }: HostileRedis) {
    this.#client = client;
    this.#send = send;
    const runWithLongerTimeout: RedisScriptClient['runWithLongerTimeout'] = (...call) => this.#run(...call);
    this.#store = createRedisTokenStore({ whenReady: () => client.whenReady(), runWithLongerTimeout }, 'test');
  }

  /** With an empty Redis of its own and no replicas. */
  static async open(): Promise<HostileFleet> {
    return new HostileFleet(await openHostileRedis());
  }

  get redisNow(): number {
    return Math.floor(this.fleet.clock.now() + this.redisSkewMs);
  }

  /** Starts replicas and gives them a second. */
  async start(count: number): Promise<void> {
    for (const replica of this.fleet.add(count, { store: this.#store })) {
      this.sent.set(replica, []);
      replica.source.start();
    }
    // Its first command comes in a later turn.
    this.#commandAt = this.fleet.clock.now();
    await this.advance(1000);
  }

  /** Ends a replica, whose memory is lost, and starts another one. */
  async replace(index: number): Promise<void> {
    const [replica] = this.fleet.replicas.splice(index % this.fleet.replicas.length, 1);
    replica?.source.stop();
    await this.start(1);
  }

  async advance(ms: number): Promise<void> {
    const { clock } = this.fleet;
    for (const end = clock.now() + ms; clock.now() < end;) {
      const stepMs = clock.now() - this.#commandAt < BUSY_MS ? FINE_STEP_MS : COARSE_STEP_MS;
      await clock.advance(Math.min(stepMs, end - clock.now()));
      while (this.#pending > 0) {
        await new Promise((resolve) => setImmediate(resolve));
        if (this.#pending === 0) await clock.advance(0);
      }
    }
  }

  /** One call of each replica; a refused one is sent again once, if there is another token for it. */
  async call(): Promise<void> {
    for (const replica of this.fleet.replicas) await this.#call(replica, true);
  }

  /** Every key with its hash. */
  async read(): Promise<Map<string, Fields>> {
    const keys = (await this.#send(['KEYS', '*'])) as string[];
    const hashes = await Promise.all(keys.map((key) => this.#send(['HGETALL', key])));
    return new Map(keys.map((key, index) => [key, toFields(hashes[index] as string[])]));
  }

  /** Puts hashes in the place of what is there. */
  async write(hashes: ReadonlyMap<string, Fields>): Promise<void> {
    await this.#send(['FLUSHALL']);
    for (const [key, fields] of hashes) if (fields.size > 0) await this.#send(['HSET', key, ...[...fields].flat()]);
  }

  async #call(replica: Replica, mayReplay: boolean): Promise<void> {
    const { source } = replica;
    const use = source.current(CALL);
    if (use === undefined) return;
    const { value, serial } = use.token;
    const isAccepted = this.isAccepted(value);
    this.sent.get(replica)?.push({ value, serial, isAccepted });
    if (isAccepted) {
      source.recordAccepted(use, !mayReplay);
      return;
    }
    source.recordRejected(use);
    const replaced = source.waitForReplacement(use, new AbortController().signal);
    const wait = { isOver: false };
    void replaced.finally(() => (wait.isOver = true));
    while (!wait.isOver) await this.advance(500);
    if ((await replaced) && mayReplay) return this.#call(replica, false);
    this.refused++;
  }

  /** Runs a script by the virtual clock. */
  async #run(...[{ source }, key, args]: Parameters<RedisScriptClient['runWithLongerTimeout']>) {
    const time = `{${Math.floor(this.redisNow / 1000)}, ${(this.redisNow % 1000) * 1000}}`;
    this.#pending++;
    this.#commandAt = this.fleet.clock.now();
    try {
      const script = defineScript(source.replace("redis.call('TIME')", time));
      return await this.#client.runWithLongerTimeout(script, key, args);
    } finally {
      this.#pending--;
    }
  }
}

function toFields(flat: readonly string[]): Fields {
  const fields = new Map<string, string>();
  for (let index = 0; index + 1 < flat.length; index += 2) fields.set(flat[index]!, flat[index + 1]!);
  return fields;
}
