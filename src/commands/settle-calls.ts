/**
 * `bearer-sidecar unknown-calls`: the calls that may have been carried out and whose client has no response, from the file of
 * `unknownCalls.file`. It settles them in a file of its own beside it: a running sidecar is the only writer of the first.
 */
import { appendFileSync, closeSync, constants } from 'node:fs';
import type { LoadOptions } from '../config/load/load.ts';
import { formatSettingName, toSingleLine } from '../config/load/problems.ts';
import { systemClock } from '../platform/clock.ts';
import { describeFileError, systemErrorCode } from '../platform/file-errors.ts';
import { readOpenCalls, settledPathOf } from '../unknown-calls/call-file.ts';
import { formatEnd, type OpenCall } from '../unknown-calls/call-records.ts';
import { openRegular } from '../unknown-calls/file-lines.ts';
import { loadWithoutPartner } from './admin-port.ts';
import { parseDurationMs, type Invocation } from './arguments.ts';
import { failWith, paintFor, type Paint } from './terminal.ts';

/** @returns 0; 1 when the file cannot be read or written, or an id is not one of an open call; 2 for wrong usage or settings */
export function unknownCalls(
  load: LoadOptions,
  { values, given, settled }: Pick<Invocation, 'values' | 'given' | 'settled'>,
): number {
  const since = values.get('since');
  const sinceAt = since === undefined ? -Infinity : parseSince(since, systemClock.wallNow());
  if (sinceAt === undefined)
    return failWith(2, `--since "${since ?? ''}": expected a duration such as 2h, or an instant: 2026-01-31T12:00Z`);
  const file = values.get('file');
  const config = file === undefined ? loadWithoutPartner(load) : undefined;
  if (file === undefined && config === undefined) return 2;
  const path = file ?? config?.unknownCalls.file;
  if (path === undefined)
    return failWith(2, `no file: expected --file PATH, or ${formatSettingName('unknownCalls.file')}`);
  const open = listOldestFirst(path);
  if (typeof open === 'string') return failWith(1, `${JSON.stringify(path)} ${open}`);
  if (settled.length > 0) return settleCalls(path, open, settled);
  const calls = open.filter(({ at }) => !(Date.parse(at) < sinceAt));
  process.stdout.write(
    given.has('json') ? `${JSON.stringify({ file: path, calls })}\n` : describeCalls(calls, paintFor(process.stdout)),
  );
  return 0;
}

/** Epoch milliseconds; undefined for another text. */
function parseSince(text: string, wallNow: number): number | undefined {
  const durationMs = parseDurationMs(text);
  if (durationMs !== undefined) return wallNow - durationMs;
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** Oldest first, or why there are none. */
function listOldestFirst(path: string): readonly OpenCall[] | string {
  try {
    return readOpenCalls(path).toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at));
  } catch (error) {
    const isOther = systemErrorCode(error) === 'EEXIST';
    return isOther ? 'holds something else than unknown calls' : describeFileError(error);
  }
}

function settleCalls(path: string, open: readonly OpenCall[], ids: readonly string[]): number {
  const unknown = ids.filter((id) => !open.some((call) => call.id === id));
  if (unknown.length > 0)
    return failWith(1, `no open call of ${JSON.stringify(path)} has the id ${unknown.join(', ')}`);
  try {
    const fd = openRegular(settledPathOf(path), constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
    // The line before may have no end.
    appendFileSync(fd, `\n${ids.map(formatEnd).join('')}`);
    closeSync(fd);
  } catch (error) {
    return failWith(1, `${JSON.stringify(settledPathOf(path))} cannot be written (${systemErrorCode(error)})`);
  }
  process.stdout.write(ids.map((id) => `settled ${id}\n`).join(''));
  return 0;
}

function describeCalls(calls: readonly OpenCall[], paint: Paint): string {
  if (calls.length === 0) return 'no call has an unknown outcome\n';
  return calls
    .map((call) => `${paint('name', call.id)}  ${describeCall(call).map(toSingleLine).join('\n  ')}\n`)
    .join('');
}

function describeCall({ at, method, path = '', route, requestId, idempotencyKey, code, status }: OpenCall): string[] {
  const response = status === undefined ? '' : `, the upstream responded with ${String(status)}`;
  const key = idempotencyKey === undefined ? '' : `, Idempotency-Key ${idempotencyKey}`;
  return [
    `${at}  ${method} ${path}`.trimEnd(),
    `route ${route}, request ${requestId}${key}`,
    code === undefined ? 'no outcome recorded: the process ended, or the call is in flight' : `${code}${response}`,
  ];
}
