/**
 * The lines of the file of unknown calls (pure): a call, before it is sent; its end, when its client has a response; why it has none. A line
 * that was torn by the end of the process or by a full disk is skipped. The file of settled calls has ends alone.
 */

export interface RecordedCall {
  /** The record's own: clients repeat the ids of their requests. */
  readonly id: string;
  /** RFC 3339, when it began to be sent. */
  readonly at: string;
  readonly requestId: string;
  readonly route: string;
  readonly method: string;
  /** On the upstream, without the query. */
  readonly path?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** A call without an end. Without a code no outcome was recorded: the process ended, or the call is still in flight. */
export interface OpenCall extends RecordedCall {
  readonly code?: string | undefined;
  /** The status of a response that its client did not get as a whole. */
  readonly status?: number | undefined;
}

/** The line begins with the id, so that it can be sorted out unparsed. */
export function formatCall(call: OpenCall): string {
  return `${JSON.stringify(call)}\n`;
}

export function formatEnd(id: string): string {
  return `${JSON.stringify({ end: id })}\n`;
}

export function formatReason(id: string, code: string, status: number | undefined): string {
  return `${JSON.stringify({ unknown: id, code, status })}\n`;
}

/** Whether a text is what a sidecar writes, perhaps behind torn lines, or empty: another file must not be overwritten. */
export function isCallFile(text: string): boolean {
  return /^\s*(?:\{"?[a-z]*"?:?\s*)*(?:$|\{"(?:id|end|unknown)":")/.test(text);
}

const RECORD = /^\{"(id|end|unknown)":"([a-z]+-\d+)"(.*)/;

/** Reads records in their order, and keeps those of open calls alone. */
export class OpenCalls {
  readonly #settled: ReadonlySet<string>;
  readonly #open = new Map<string, OpenCall>();
  /** Beginnings of ids that have been used. */
  readonly runs = new Set<string>();

  /** @param settled ids of calls that are not open any more. Default: none */
  constructor(settled: ReadonlySet<string> = new Set()) {
    this.#settled = settled;
    for (const id of settled) this.runs.add(runOf(id));
  }

  /** In their order. */
  get calls(): OpenCall[] {
    return [...this.#open.values()];
  }

  read(text: string): void {
    for (const line of text.split('\n')) {
      const [, kind, id = '', rest] = RECORD.exec(line) ?? [];
      if (kind === undefined) continue;
      this.runs.add(runOf(id));
      if (kind !== 'end') this.#readRecord(line, id);
      else if (rest === '}') this.#open.delete(id);
    }
  }

  #readRecord(line: string, id: string): void {
    const record = this.#settled.has(id) ? undefined : parseRecord(line);
    if (record === undefined) return;
    const known = this.#open.get(id);
    // An id of its own: a part of the text would keep all of it in memory.
    if (isCall(record)) this.#open.set(record.id, { ...record, ...known });
    else if (known !== undefined) this.#open.set(known.id, { ...known, ...readReason(record) });
  }
}

/** The ids of the calls that a text ends. */
export function listEnded(text: string): Set<string> {
  return new Set([...text.matchAll(/^\{"end":"([a-z]+-\d+)"\}$/gm)].map(([, id = '']) => id));
}

function runOf(id: string): string {
  return id.slice(0, id.indexOf('-'));
}

type Fields = Readonly<Record<string, unknown>>;

function parseRecord(line: string): Fields | undefined {
  try {
    return JSON.parse(line) as Fields;
  } catch {
    return undefined;
  }
}

function isCall(record: Fields): record is Fields & OpenCall {
  return ['id', 'at', 'requestId', 'route', 'method'].every((name) => typeof record[name] === 'string');
}

function readReason({ code, status }: Fields): Pick<OpenCall, 'code' | 'status'> {
  return { code: String(code), status: typeof status === 'number' ? status : undefined };
}
