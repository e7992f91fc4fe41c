/**
 * The lines of the file of unknown calls (pure): a call, before it is sent; its end, when its client has a response; why it has none. A line
 * that was torn by the end of the process or by a full disk is skipped. The file of settled calls has ends alone.
 */

export interface RecordedCall {
  /** Of the record: clients repeat the ids of their requests. */
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
  /** Of a response that its client did not get as a whole. */
  readonly status?: number | undefined;
}

/** Its id comes first, so that a line can be sorted out unparsed. */
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

const END = /^\{"end":"([a-z]+-\d+)"\}$/gm;

/** The calls of a file that have no end in it, and none in the file of settled calls, in their order. */
export function listOpenCalls(text: string, settled: string): OpenCall[] {
  const ended = new Set([...text.matchAll(END), ...settled.matchAll(END)].map(([, id]) => id));
  const open = new Map<string, OpenCall>();
  for (const line of text.split('\n')) {
    // Most calls have ended: they are not parsed.
    const [, id = ''] = /^\{"(?:id|unknown)":"([a-z]+-\d+)"/.exec(line) ?? [];
    const record = id === '' || ended.has(id) ? undefined : parseRecord(line);
    if (record === undefined) continue;
    const known = open.get(id);
    if (isCall(record)) open.set(id, { ...record, ...known });
    else if (known !== undefined) open.set(id, { ...known, ...readReason(record) });
  }
  return [...open.values()];
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
