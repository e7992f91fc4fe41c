/** An upstream that does with each attempt what a script says, and ends each connection behind it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import net from 'node:net';
import { closeServer, freePort } from '../support/loopback.ts';

/** `refused`: no connection is accepted. A `cut` response breaks off within its body. */
export const STEPS = [
  '429',
  'cut 429',
  '401',
  'cut 401',
  '503',
  'reset unread',
  'reset',
  'cut head',
  'refused',
] as const;
export type Step = (typeof STEPS)[number];

/** What the upstream knows of an attempt that reached it. */
export interface BegunAttempt {
  /** It has the whole request, and may have carried it out. */
  readonly isRead: boolean;
  readonly hasSentHead: boolean;
}

export class ScriptedUpstream implements AsyncDisposable {
  /** It has the request of the attempt behind the script, to which it does not respond. */
  hasLast = false;
  readonly begun: BegunAttempt[] = [];
  #next = 0;
  readonly #steps: readonly Step[];
  readonly #respondsToLast: boolean;
  readonly #port: number;
  readonly #server: Server;

  private constructor(steps: readonly Step[], respondsToLast: boolean, port: number) {
    this.#steps = steps;
    this.#respondsToLast = respondsToLast;
    this.#port = port;
    this.#server = createServer((request, response) => {
      this.#act(request, response).catch(() => request.destroy());
    });
  }

  /** @param respondsToLast whether the attempt behind the script gets a 200, or no response */
  static async start(steps: readonly Step[], respondsToLast: boolean): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(steps, respondsToLast, await freePort());
    // A plan that refuses the first connection begins without a listening server.
    await upstream.#prepare();
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.#port)}`;
  }

  /** Every attempt of the script has been made. */
  get isOver(): boolean {
    return this.#next >= this.#steps.length;
  }

  /** To be called when an attempt got no connection. */
  async advance(): Promise<void> {
    this.#next++;
    await this.#prepare();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) await this.#listen();
    await closeServer(this.#server);
  }

  async #act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const step = this.#steps[this.#next];
    const hasSentHead = step === undefined ? this.#respondsToLast : /\d/.test(step);
    this.begun.push({ isRead: step !== 'reset unread', hasSentHead });
    // The next attempt may follow at once.
    await this.advance();
    if (step !== 'reset unread') await request.resume().toArray();
    const { socket } = request;
    const status = Number(/\d+/.exec(step ?? '')?.[0]);
    const headers = { connection: 'close', ...(status === 401 ? {} : { 'retry-after': '1' }) };
    if (step === undefined) {
      if (this.#respondsToLast) response.writeHead(200, headers).end('done');
      this.hasLast = true;
    } else if (step === 'cut head') socket.write('HTTP/1.1 20', () => socket.resetAndDestroy());
    else if (step.startsWith('reset')) socket.resetAndDestroy();
    else if (step.startsWith('cut'))
      response.writeHead(status, { ...headers, 'content-length': 9 }).write('half', () => socket.resetAndDestroy());
    else response.writeHead(status, headers).end('refused');
  }

  async #prepare(): Promise<void> {
    const isRefusing = this.#steps[this.#next] === 'refused';
    // http.Server's own close would end idle connections as well.
    if (isRefusing && this.#server.listening) net.Server.prototype.close.call(this.#server);
    else if (!isRefusing && !this.#server.listening) await this.#listen();
  }

  async #listen(): Promise<void> {
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
  }
}
