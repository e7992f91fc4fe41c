/**
 * A witness for every byte of a body. The sender states the id, length and CRC-32 of a body in one header field, the receiver
 * compares what arrives with it, so that both ends can compare without sharing memory. The contents follow from a name.
 */
import { crc32 } from 'node:zlib';

/** Carries a `Statement`, in requests and in responses. */
export const DIGEST_HEADER = 'x-witness';
/** In a request: which response body is wanted, as `LENGTH FRAMING`. */
export const RESPONSE_HEADER = 'x-witness-reply';

export const FRAMINGS = ['length', 'chunked', 'close'] as const;
export type Framing = (typeof FRAMINGS)[number];

export interface BodyDigest {
  readonly bytes: number;
  readonly crc32: number;
}

/** What the sender says of a body. */
export interface StatedBody extends BodyDigest {
  readonly id: string;
}

/** A prime: no buffer, chunk or packet size divides it, so that a piece that is left out or repeated shows. */
const PERIOD = 4_194_301;
const CONTENT = Buffer.alloc(2 * PERIOD);
fillContent();

/** The CRC-32 and length of bytes that come in pieces. */
export class IncrementalDigest implements BodyDigest {
  bytes = 0;
  crc32 = 0;

  add(chunk: Buffer): this {
    this.bytes += chunk.length;
    this.crc32 = crc32(chunk, this.crc32);
    return this;
  }
}

/** The content that belongs to a name: the same bytes for the same name in every process. Up to 4 MB it is not copied. */
export function contentOf(name: string, length: number): Buffer {
  return length <= PERIOD ? pieceOf(name, 0, length) : Buffer.concat([...piecesOf(name, length, PERIOD)]);
}

/** The same content in pieces, for what does not fit into memory. */
export function* piecesOf(name: string, length: number, pieceBytes: number): Generator<Buffer> {
  for (let at = 0; at < length; at += pieceBytes) yield pieceOf(name, at, Math.min(pieceBytes, length - at));
}

export function stateBody(id: string, body: Buffer): StatedBody {
  return { id, bytes: body.length, crc32: crc32(body) };
}

export function formatStatedBody({ id, bytes, crc32: sum }: StatedBody): string {
  return `${id} ${String(bytes)} ${sum.toString(16)}`;
}

/** Undefined when there is none, or none that can be read. */
export function parseStatedBody(value: unknown): StatedBody | undefined {
  const [, id, bytes, sum] = /^(\S+) (\d+) ([\da-f]+)$/.exec(typeof value === 'string' ? value : '') ?? [];
  if (id === undefined || bytes === undefined || sum === undefined) return undefined;
  return { id, bytes: Number(bytes), crc32: parseInt(sum, 16) };
}

/** The id of the response body that belongs to a request. */
export function responseIdOf(id: string): string {
  return `reply-${id}`;
}

/** The response body that an upstream sends when so many bytes are asked for. */
export function responseBodyOf(id: string, length: number): Buffer {
  return contentOf(responseIdOf(id), length);
}

/** What is wrong with a body that passed for complete; undefined when it is what was sent. */
export function findAlteration(stated: StatedBody, received: BodyDigest): string | undefined {
  if (received.bytes === stated.bytes && received.crc32 === stated.crc32) return undefined;
  const bytes = `${String(received.bytes)} bytes of ${String(stated.bytes)}`;
  return `${stated.id}: ${received.bytes === stated.bytes ? `${bytes}, with other contents` : bytes}`;
}

function pieceOf(name: string, at: number, length: number): Buffer {
  const start = (crc32(name) + at) % PERIOD;
  return CONTENT.subarray(start, start + length);
}

/** Xorshift, so that the contents never repeat within a period. */
function fillContent(): void {
  let state = 0x9e3779b9;
  for (let at = 0; at < PERIOD; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    CONTENT[at] = state;
  }
  CONTENT.copy(CONTENT, PERIOD, 0, PERIOD);
}
