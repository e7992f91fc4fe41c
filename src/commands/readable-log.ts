/** The readable log: the form of each JSON line changes here, after redaction; control characters are escaped. */
import type { Config } from '../config/config.ts';
import { toSingleLine } from '../config/load/problems.ts';
import { parseJsonObject, type JsonFields } from '../token/endpoint/json-object.ts';
import { createLog, type Log, type LogOptions } from '../telemetry/log/log.ts';
import { createDescriptorWriter } from '../telemetry/log/log-sink.ts';
import { paintFor, type Paint, type TextRole } from './terminal.ts';

type LogFormat = Config['log']['format'];

export interface OutputStream extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly fd: number;
}

const LEVEL_ROLES: Readonly<Record<string, TextRole>> = { fatal: 'bad', error: 'bad', warn: 'warning', info: 'good' };
const LEVEL_WIDTH = 5;

export function isReadableFormat(format: LogFormat, stream: Pick<OutputStream, 'isTTY'>): boolean {
  return format === 'pretty' || (format === 'auto' && stream.isTTY === true);
}

export function openLog(
  { format, level, sample, slowMs }: Config['log'],
  stream: OutputStream,
  options: Pick<LogOptions, 'destination'> = {},
): Log {
  const { destination = createDescriptorWriter(stream) } = options;
  const form = isReadableFormat(format, stream) ? { format: formatLines(paintFor(stream)) } : {};
  const sampling = { share: sample, slowMs, random: Math.random };
  return createLog({ ...options, ...form, level, sampling, destination });
}

/** A terminal shows ^C for Ctrl-C: the next log line then begins on a new line. */
export function breakLineOnStop(format: LogFormat, stream: OutputStream, stop: AbortSignal): void {
  if (stream.isTTY !== true || !isReadableFormat(format, stream)) return;
  stop.addEventListener('abort', () => stream.write('\n'), { once: true });
}

function formatLines(paint: Paint): (lines: string) => string {
  return (lines) =>
    lines
      .split('\n')
      .slice(0, -1)
      .map((line) => `${formatLine(line, paint)}\n`)
      .join('');
}

/** Formats one line without its line end; a line that is not a JSON object stays as it is, escaped. */
export function formatLine(line: string, paint: Paint): string {
  const fields = parseJsonObject(line);
  if (fields === undefined) return toSingleLine(line);
  const { time, level, msg, ...rest } = fields;
  const name = textOf(level);
  const head = [paint('quiet', formatLocalTime(time)), paint(LEVEL_ROLES[name] ?? 'quiet', name.padEnd(LEVEL_WIDTH))];
  const words = msg === 'request' ? describeRequest(rest, paint) : [textOf(msg), ...formatPairs(rest, paint)];
  return [...head, ...words].join(' ');
}

/** `POST /quotes 201 in 12.3 ms`, then the fields with unusual values. */
function describeRequest({ method, path, code, durationMs, ...rest }: JsonFields, paint: Paint): string[] {
  const isOrdinary = ([key, value]: readonly [string, unknown]): boolean => TYPICAL_FIELDS[key] === value;
  const others = Object.fromEntries(Object.entries(rest).filter((entry) => !isOrdinary(entry)));
  const status = paint(roleOf(Number(code)), textOf(code));
  return [textOf(method), textOf(path), status, `in ${textOf(durationMs)} ms`, ...formatPairs(others, paint)];
}

const TYPICAL_FIELDS: JsonFields = { route: 'default', source: 'upstream', queuedMs: 0, attempts: 1 };

function roleOf(status: number): TextRole {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warning' : 'good';
}

function formatPairs(fields: JsonFields, paint: Paint): string[] {
  return Object.entries(fields).map(
    ([key, value]) => `${paint('quiet', `${toSingleLine(key)}=`)}${formatValue(value)}`,
  );
}

function formatValue(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return toSingleLine(value);
  return toSingleLine(JSON.stringify(value));
}

function textOf(value: unknown): string {
  return toSingleLine(typeof value === 'string' ? value : JSON.stringify(value ?? ''));
}

function formatLocalTime(time: unknown): string {
  const at = new Date(textOf(time));
  if (Number.isNaN(at.getTime())) return '--:--:--.---';
  const [hours, minutes, seconds] = [at.getHours(), at.getMinutes(), at.getSeconds()].map((number) =>
    String(number).padStart(2, '0'),
  );
  return `${hours ?? ''}:${minutes ?? ''}:${seconds ?? ''}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}
