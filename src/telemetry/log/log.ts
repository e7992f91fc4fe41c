/** The log: events as JSON lines (pino), without secrets and terminal control characters, written through a bounded sink. */
import { pino, type Logger } from 'pino';
import { systemClock, type Clock } from '../../platform/clock.ts';
import { describeEvent, SUMMARIES } from '../event-texts.ts';
import { Secrets } from '../../platform/secrets.ts';
import type { LogDeliveryProblem, LogLevel, SidecarEvent } from '../events.ts';
import type { DebugEvent, RecordObservers, RecordRequest } from '../request-record.ts';
import { createAccessDescriber, levelOfRequest, RequestLogBatch, type AccessLogSampling } from './request-line.ts';
import { EventCoalescer } from './event-coalescer.ts';
import { LogSink, createDescriptorWriter, type LogWriter } from './log-sink.ts';

/** The fields of a line besides time, level and message. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  readonly level: LogLevel;
  /** Default: all requests are logged. */
  readonly sampling?: AccessLogSampling;
  /** Default: process.stdout. */
  readonly destination?: LogWriter;
  /** Formats complete lines; must keep their number. Default: JSON. */
  readonly format?: (lines: string) => string;
  /** Default: the process's own clock. */
  readonly clock?: Clock;
}

export type Log = ReturnType<typeof createLog>;

export function createLog(options: LogOptions) {
  const { clock = systemClock } = options;
  const secrets = new Secrets(clock);
  const sink = createSink(options, secrets, (problem) => logRecovery(logger, problem));
  const { logger, requests } = createEventLogger(options, clock, sink, secrets);
  const events = createEventWriter(logger, clock);
  const writeAtExit = (): void => {
    requests.writeAll();
    void sink.close(0);
  };
  // A process that crashes still logs why.
  process.once('exit', writeAtExit);
  const recorders = createRecorders(logger, requests);
  const writeAt = (own: 'debug' | 'info' | 'warn' | 'error') => {
    return (message: string, fields: LogFields = {}): void => logger[own](fields, message);
  };
  return {
    observe: events.observe,
    /** For the record of each request, and at level `debug` for each attempt and permit. */
    recorders,
    debug: writeAt('debug'),
    info: writeAt('info'),
    warn: writeAt('warn'),
    error: writeAt('error'),
    /** What every line is searched for. */
    secrets,
    setLevel: (next: LogLevel): void => {
      requests.writeAll();
      applyLevel(next, logger, recorders);
    },
    droppedLines: () => sink.droppedLines,
    deliveryProblem: () => sink.deliveryProblem,
    /** Writes the remaining lines, waiting at most `timeoutMs` for a slow reader; later lines are dropped. Never rejects. */
    async close(timeoutMs: number): Promise<void> {
      events.stop();
      requests.writeAll();
      await sink.close(timeoutMs);
      process.off('exit', writeAtExit);
    },
  };
}

/**
 * A logger, and the batch of requests; every other line is written after the requests of the batch. The lines of requests have the form of
 * pino's, which would build each of them from thirty texts: 2 300 bytes, a ninth of all that a request allocates.
 */
function createEventLogger({ level, sampling }: LogOptions, clock: Clock, sink: LogSink, secrets: Secrets) {
  const describeRequest = createAccessDescriber(sampling, secrets.mask);
  const formatTime = createTimeFormatter();
  const formatters = { level: (label: string) => ({ level: label }) };
  const timestamp = (): string => formatTime(clock.wallNow());
  const write = (line: string): void => {
    requests.writeAll();
    sink.write(line);
  };
  const logger = pino({ level, base: null, timestamp, formatters }, { write });
  const requests = new RequestLogBatch({
    clock,
    writeLine(event, wallAt) {
      const fields = describeRequest(event);
      if (fields === undefined) return;
      const start = `{"level":"${levelOfRequest(event)}"${formatTime(wallAt)},`;
      sink.write(`${start}${JSON.stringify(fields).slice(1, -1)},"msg":"request"}\n`);
    },
    onBatch: () => sink.flush(),
  });
  return { logger, requests };
}

/** Several lines often have the same time: it is formatted once. */
function createTimeFormatter(): (wallAt: number) => string {
  let formattedAt = NaN;
  let formatted = '';
  return (at) => {
    if (at !== formattedAt) formatted = `,"time":"${new Date((formattedAt = at)).toISOString()}"`;
    return formatted;
  };
}

function createRecorders(logger: Logger, requests: RequestLogBatch): RecordObservers {
  const recordRequest: RecordRequest = (record) => {
    if (logger.isLevelEnabled('info') || logger.isLevelEnabled(levelOfRequest(record))) requests.add(record);
  };
  const recorders = { requests: [recordRequest] };
  applyLevel(logger.level as LogLevel, logger, recorders);
  return recorders;
}

function applyLevel(level: LogLevel, logger: Logger, recorders: RecordObservers): void {
  logger.level = level;
  recorders.debug = logger.isLevelEnabled('debug') ? (event) => logDebugEvent(logger, event) : undefined;
}

function createSink(
  { destination, format, clock = systemClock }: LogOptions,
  secrets: Secrets,
  onRecovered: (problem: LogDeliveryProblem) => void,
): LogSink {
  const escapeControl = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const redact = (lines: string): string => secrets.maskLines(lines.replace(RAW_CONTROLS, escapeControl));
  return new LogSink({
    writer: destination ?? createDescriptorWriter(process.stdout),
    redact: format === undefined ? redact : (lines) => format(redact(lines)),
    clock,
    onRecovered,
  });
}

/** DEL, the C1 controls (8-bit CSI included) and the two line separators that JSON does not escape. */
const RAW_CONTROLS = /[\u007f-\u009f\u2028\u2029]/g;

type RepeatingEvent = Extract<SidecarEvent, { readonly kind: keyof typeof SUMMARIES }>;

/** Writes events, and those that repeat often as summaries. */
function createEventWriter(logger: Logger, clock: Clock) {
  const coalescers = new Map<string, EventCoalescer<RepeatingEvent>>();
  for (const [kind, { everyMs, counted, text }] of Object.entries(SUMMARIES)) {
    const coalescer = new EventCoalescer<RepeatingEvent>({
      clock,
      windowMs: everyMs,
      keyOf: ({ route }) => route,
      onFirst: (event) => logEvent(logger, event),
      onSummary: (count, last) => logEvent(logger, last, { text, fields: { [counted]: count } }),
    });
    coalescers.set(kind, coalescer);
  }
  return {
    observe: (event: SidecarEvent): void => {
      const coalescer = coalescers.get(event.kind);
      if (coalescer === undefined) logEvent(logger, event);
      else coalescer.add(event as RepeatingEvent);
    },
    stop: (): void => {
      for (const coalescer of coalescers.values()) coalescer.stop();
    },
  };
}

/** @param summary of a line that stands for several events: its text, and the fields that come first */
function logEvent(
  logger: Logger,
  event: SidecarEvent,
  summary?: { readonly text: string; readonly fields: LogFields },
): void {
  const { log } = describeEvent(event);
  if (log === undefined) {
    if (logger.isLevelEnabled('debug')) logDebugEvent(logger, event);
    return;
  }
  for (const { level, text, fields = withoutKind(event) } of [log].flat())
    logger[level]({ ...summary?.fields, ...fields }, summary?.text ?? text);
}

function withoutKind({ kind: _, ...fields }: SidecarEvent): LogFields {
  return fields;
}

function logDebugEvent(logger: Logger, event: SidecarEvent | DebugEvent): void {
  logger.debug(event, event.kind.replaceAll('-', ' '));
}

function logRecovery(logger: Logger, { code, lostLines: lines }: LogDeliveryProblem): void {
  if (code === undefined) logger.warn({ lines }, 'log lines dropped: standard output is read too slowly');
  else if (lines > 0) logger.warn({ lines, refusal: code }, 'log lines dropped: writing to standard output failed');
  else logger.warn({ lines, refusal: code }, 'log output works again: no line was lost');
}
