/** A client that sends requests in pieces of its choosing on a raw connection, and reads the responses strictly. */
import type { Socket } from 'node:net';
import { ResponseReader } from '../support/raw-response.ts';
import type { ReceivedResponse } from '../support/raw-response.ts';
import { openSocket } from '../support/raw-client.ts';
import { verificationHeaders } from '../support/witness-client.ts';
import type { VerifiedCall } from '../support/witness-client.ts';
import { contentOf } from '../support/witness.ts';

export interface SentRequest extends VerifiedCall {
  readonly method: 'POST' | 'PUT';
  readonly requestBytes: number;
  /** Sizes of the chunks, in turns; without them the length is declared. */
  readonly chunkSizes?: readonly number[];
  readonly expectsContinue?: boolean;
}

/** Head and body as they go over the wire. */
export function encodeRequest(sent: SentRequest): { readonly head: Buffer; readonly body: Buffer } {
  const { id, method, requestBytes, chunkSizes, expectsContinue = false } = sent;
  const content = contentOf(id, requestBytes);
  const fields: Readonly<Record<string, string>> = {
    Host: '127.0.0.1',
    ...verificationHeaders(sent),
    ...(expectsContinue ? { Expect: '100-continue' } : {}),
    ...(chunkSizes === undefined ? { 'Content-Length': String(requestBytes) } : { 'Transfer-Encoding': 'chunked' }),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} /bodies HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  return { head, body: chunkSizes === undefined ? content : encodeChunks(content, chunkSizes) };
}

function encodeChunks(content: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, turn = 0; at < content.length; turn++) {
    const piece = content.subarray(at, at + (sizes[turn % sizes.length] ?? content.length));
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`, 'latin1'), piece, Buffer.from('\r\n', 'latin1'));
    at += piece.length;
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n', 'latin1')]);
}

export class PacketClient implements Disposable {
  readonly reader = new ResponseReader();
  isClosed = false;
  readonly socket: Socket;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    const look = (): void => this.#wake();
    socket.on('data', (chunk: Buffer) => {
      this.reader.push(chunk);
      look();
    });
    socket.on('end', () => this.reader.end()).on('drain', look);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.isClosed = true;
      look();
    });
  }

  static async connect(url: string): Promise<PacketClient> {
    return new PacketClient(await openSocket(url));
  }

  /** Sends a piece; waits by default while the connection accepts no more. */
  async write(piece: Buffer, waitsForDrain = true): Promise<void> {
    if (this.isClosed || !this.socket.writable) return;
    if (this.socket.write(piece) || !waitsForDrain) return;
    await this.#until(() => this.socket.writableLength < this.socket.writableHighWaterMark);
  }

  /** Waits for the response with this index; undefined when the connection ends before it is complete. */
  async response(index: number): Promise<ReceivedResponse | undefined> {
    await this.#until(() => this.reader.responses.length > index);
    return this.reader.responses[index];
  }

  /** Waits until the request with this index has an interim response, or a final one instead of it. */
  async permission(index: number): Promise<void> {
    const { reader } = this;
    await this.#until(
      () => reader.responses.length > index || (reader.responses.length === index && reader.hasInterim),
    );
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!this.isClosed && !holds())
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}
