/**
 * A client with a constant rate, independent of the response times: a request is due at its instant, goes out on the next free
 * connection, and its time counts from the instant at which it was due. wrk sends the next request only after a response, which favours
 * a proxy that stalls. GETs only. Prints one line of JSON. Arguments: URL, requests a second, connections, seconds.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

const [target = '', rate = '', connections = '', seconds = ''] = process.argv.slice(2);
const { hostname, port, pathname, host } = new URL(target);
const perMs = Number(rate) / 1000;
const total = Math.round(Number(rate) * Number(seconds));
const REQUEST = Buffer.from(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
/** Node's own timers know whole milliseconds only, which would be bursts. */
const TICK_MS = 0.1;
const WARM_UP_SHARE = 0.2;
const COMPLETION_TIMEOUT_MS = 10_000;

const HEAD_END = Buffer.from('\r\n\r\n');
const free: Connection[] = [];
const all: Connection[] = [];
const lateness = new Float64Array(total);
let sent = 0;
let responses = 0;
let badResponses = 0;
let brokenOff = 0;
let startedAt = 0;

class Connection {
  readonly #socket: Socket;
  #requestIndex = -1;
  #missingBytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true).on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', () => socket.destroy()).once('close', () => this.#breakOff());
  }

  sendRequest(index: number): void {
    this.#requestIndex = index;
    this.#socket.write(REQUEST);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The head comes in one piece with these short responses; the rest of the body may follow. */
  #take(chunk: Buffer): void {
    if (this.#missingBytes === 0) {
      const end = chunk.indexOf(HEAD_END);
      const head = chunk.toString('latin1', 0, end);
      if (!head.startsWith('HTTP/1.1 200')) badResponses++;
      this.#missingBytes = end + HEAD_END.length + lengthOf(head);
    }
    this.#missingBytes -= chunk.length;
    if (this.#missingBytes > 0) return;
    lateness[this.#requestIndex] = performance.now() - startedAt - this.#requestIndex / perMs;
    this.#requestIndex = -1;
    responses++;
    free.push(this);
    sendDueRequests();
  }

  #breakOff(): void {
    if (this.#requestIndex >= 0) brokenOff++;
    this.#requestIndex = -1;
  }
}

function lengthOf(head: string): number {
  return Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? NaN);
}

function sendDueRequests(): void {
  const due = Math.min(total, Math.floor((performance.now() - startedAt) * perMs));
  while (sent < due) {
    // The one that has rested longest: all are used.
    const connection = free.shift();
    if (connection === undefined) return;
    connection.sendRequest(sent++);
  }
}

function open(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve());
    socket.once('error', reject);
    const connection = new Connection(socket);
    free.push(connection);
    all.push(connection);
  });
}

for (let count = 0; count < Number(connections); count++) await open();
const pacer = new Worker(
  `const { parentPort } = require('node:worker_threads');
   const never = new Int32Array(new SharedArrayBuffer(4));
   for (;;) { Atomics.wait(never, 0, 0, ${TICK_MS}); parentPort.postMessage(0); }`,
  { eval: true },
);
startedAt = performance.now();
pacer.on('message', sendDueRequests);
const until = startedAt + Number(seconds) * 1000 + COMPLETION_TIMEOUT_MS;
while (responses + brokenOff < total && performance.now() < until) await sleep(20);
await pacer.terminate();
for (const connection of all) connection.close();

const measured = lateness.slice(Math.floor(total * WARM_UP_SHARE)).toSorted();
const at = (share: number): number => Math.round((measured[Math.floor(measured.length * share)] ?? NaN) * 1000);
const figures = {
  requests: responses,
  p50Us: at(0.5),
  p99Us: at(0.99),
  p999Us: at(0.999),
  failed: total - responses + badResponses,
};
console.log(JSON.stringify(figures));
