/** Reads responses from bytes as they come, as RFC 9112 frames them, and keeps every header field as it was written. */

export interface ReceivedResponse {
  readonly version: string;
  readonly status: number;
  readonly reason: string;
  /** Names and values as received, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  readonly framing: 'none' | 'length' | 'chunked' | 'close';
  readonly trailers: readonly string[];
}

interface Head extends Omit<ReceivedResponse, 'body' | 'trailers' | 'framing'> {
  readonly framing: ReceivedResponse['framing'];
  readonly length: number;
}

const EMPTY = Buffer.alloc(0);

export class ResponseReader {
  /** Complete final responses, in order. */
  readonly responses: ReceivedResponse[] = [];
  /** Interim responses (1xx) so far. */
  interim = 0;
  /** The next final response has had an interim one before it. */
  hasInterim = false;
  readonly #methods: string[] = [];
  #unread: Buffer = EMPTY;
  #head: Head | undefined;
  #body: Buffer[] = [];
  /** Bytes of content that are still to come before the next thing to read. */
  #left = 0;
  #isInChunk = false;
  #trailers: string[] | undefined;

  /** A request has been sent whose response is still to come: to HEAD it has no body. */
  expect(method: string): void {
    this.#methods.push(method);
  }

  /** Whether a response has begun and is not complete. */
  get isWithin(): boolean {
    return this.#head !== undefined || this.#unread.length > 0;
  }

  /** @throws Error when the bytes are no response */
  push(chunk: Buffer): void {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    while (this.#unread.length > 0 && this.#step());
  }

  /** The server has closed its side: that ends a body without a length, and nothing else. */
  end(): void {
    if (this.#head?.framing === 'close') this.#finish();
  }

  /** False when more bytes are needed. */
  #step(): boolean {
    if (this.#head === undefined) return this.#readHead();
    if (this.#head.framing === 'chunked' && this.#trailers !== undefined) return this.#readTrailer(this.#trailers);
    if (this.#head.framing === 'chunked' && this.#left === 0) return this.#readChunkLine();
    this.#takeContent();
    return true;
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const head = parseHead(this.#unread.toString('latin1', 0, end), this.#methods[0] ?? 'GET');
    this.#unread = this.#unread.subarray(end + 4);
    if (head.status < 200 && head.status !== 101) {
      this.interim++;
      this.hasInterim = true;
      return true;
    }
    this.#head = head;
    this.#left = head.framing === 'close' ? Infinity : head.length;
    if (head.framing === 'none' || (head.framing === 'length' && head.length === 0)) this.#finish();
    return true;
  }

  #takeContent(): void {
    const piece = this.#unread.subarray(0, Math.min(this.#left, this.#unread.length));
    this.#unread = this.#unread.subarray(piece.length);
    this.#body.push(piece);
    this.#left -= piece.length;
    if (this.#left === 0 && this.#head?.framing === 'length') this.#finish();
  }

  #readChunkLine(): boolean {
    const end = this.#unread.indexOf('\r\n');
    if (end < 0) return false;
    const line = this.#unread.toString('latin1', 0, end);
    this.#unread = this.#unread.subarray(end + 2);
    if (this.#isInChunk) {
      if (line !== '') throw new Error(`a chunk ends with ${JSON.stringify(line)}`);
      this.#isInChunk = false;
      return true;
    }
    if (!/^[\da-f]+$/i.test(line)) throw new Error(`chunk size ${JSON.stringify(line)}`);
    this.#left = parseInt(line, 16);
    if (this.#left === 0) this.#trailers = [];
    else this.#isInChunk = true;
    return true;
  }

  #readTrailer(trailers: string[]): boolean {
    const end = this.#unread.indexOf('\r\n');
    if (end < 0) return false;
    const line = this.#unread.toString('latin1', 0, end);
    this.#unread = this.#unread.subarray(end + 2);
    if (line === '') this.#finish();
    else trailers.push(line);
    return true;
  }

  #finish(): void {
    if (this.#head === undefined) return;
    const { version, status, reason, headers, framing } = this.#head;
    const body = Buffer.concat(this.#body);
    this.responses.push({ version, status, reason, headers, framing, body, trailers: this.#trailers ?? [] });
    this.#methods.shift();
    this.hasInterim = false;
    this.#head = undefined;
    this.#trailers = undefined;
    this.#body = [];
    this.#left = 0;
  }
}

/** First value of a field; `name` in lower case. */
export function headerOf(response: ReceivedResponse, name: string): string | undefined {
  return response.headers.find(([candidate]) => candidate.toLowerCase() === name)?.[1];
}

function parseHead(text: string, method: string): Head {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const [, version, code, reason] = /^(HTTP\/1\.[01]) (\d{3})(?: (.*))?$/.exec(statusLine) ?? [];
  if (version === undefined) throw new Error(`status line ${JSON.stringify(statusLine)}`);
  const fields = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')] as const;
  });
  const valueOf = (name: string): string | undefined => fields.find(([field]) => field.toLowerCase() === name)?.[1];
  const status = Number(code);
  const length = Number(valueOf('content-length') ?? NaN);
  const framing = framingOf(method, status, valueOf('transfer-encoding'), length);
  return { version, status, reason: reason ?? '', headers: fields, framing, length: framing === 'length' ? length : 0 };
}

/** RFC 9112 §6.3. */
function framingOf(method: string, status: number, coding: string | undefined, length: number): Head['framing'] {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 'none';
  if (coding !== undefined) return 'chunked';
  return Number.isNaN(length) ? 'close' : 'length';
}
