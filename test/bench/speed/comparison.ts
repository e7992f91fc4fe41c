/**
 * A witness beside wrk: while a proxy is under load, a few calls a second carry bodies through it whose every byte is compared, at an
 * upstream of their own behind nginx and at the client. Wrk's own requests are not compared.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { callVerified } from '../../support/witness-client.ts';
import { startVerifyingUpstream } from '../../support/witness-upstream.ts';

/** Seldom enough not to show in the figures. */
const PAUSE_MS = 200;
const SIZES = [0, 27, 1400, 16_385, 65_537, 200_001];
const PATH = '/witness';

export class BodyVerifier implements AsyncDisposable {
  /** Calls that got a 200 and were compared. */
  compared = 0;
  /** Bodies that passed for complete and are not what was sent. */
  readonly altered: string[] = [];
  readonly url: string;
  readonly #upstream: Awaited<ReturnType<typeof startVerifyingUpstream>>;
  #calls = 0;

  private constructor(upstream: Awaited<ReturnType<typeof startVerifyingUpstream>>) {
    this.#upstream = upstream;
    this.url = upstream.url;
  }

  /** Starts the upstream that nginx passes these calls on to. */
  static async start(): Promise<BodyVerifier> {
    return new BodyVerifier(await startVerifyingUpstream());
  }

  /**
   * Compares as long as `load` takes; a call that is under way then is given up.
   * @param name of the proxy, for the report
   * @param url of the proxy, without a path
   * @param prefix of the route to take
   */
  async verifyDuring<T>(name: string, url: string, load: () => Promise<T>, prefix = ''): Promise<T> {
    const agent = new Agent();
    const over = new AbortController();
    const comparing = (async (): Promise<void> => {
      while (!over.signal.aborted) {
        await this.#compareOne(name, agent, `${url}${prefix}${PATH}`);
        await sleep(PAUSE_MS);
      }
    })();
    try {
      return await load();
    } finally {
      over.abort();
      await agent.destroy();
      await comparing;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#upstream[Symbol.asyncDispose]();
  }

  async #compareOne(name: string, agent: Agent, url: string): Promise<void> {
    const index = this.#calls++;
    const size = (at: number): number => SIZES[at % SIZES.length] ?? 0;
    const call = {
      id: `beside-${index}`,
      requestBytes: size(index),
      responseBytes: size(Math.floor(index / SIZES.length)),
    };
    const { status, alteration } = await callVerified(agent, url, call);
    if (status === 200) this.compared++;
    const found = this.#upstream.stats.altered.splice(0);
    if (alteration !== undefined) found.push(alteration);
    this.altered.push(...found.map((one) => `${name}: ${one}`));
  }
}
