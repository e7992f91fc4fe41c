/**
 * The log: JSON lines on stdout, one per request at `info`. Turns events into lines (pino), removes secrets and terminal control
 * characters (redaction.ts), and writes them through a bounded sink (log-sink.ts).
 */
import type { Logger } from 'pino';
import { systemClock } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { createAccessDescriber, levelOfRequest } from './access-lines.ts';
import type { AccessLogSampling } from './access-lines.ts';
import { createKeyedCoalescer } from './event-coalescer.ts';
import type { EventCoalescer } from './event-coalescer.ts';
import type { EventObserver, LogDeliveryProblem, LogLevel, SidecarEvent } from '../events.ts';
import type { DebugEvent, RecordObservers, RecordRequest } from '../request-record.ts';
import { createEventLogger } from './lines.ts';
import { LogSink } from './log-sink.ts';
import { createDescriptorWriter } from './log-writer.ts';
import type { LogWriter } from './log-writer.ts';
import { createRedactor } from './redaction.ts';
import type { Redactor } from './redaction.ts';
import type { RequestLogBatch } from './request-lines.ts';
import { truncate } from './log-values.ts';
import { logReload } from './reload-lines.ts';
import { logTokenEvent } from './token-lines.ts';

type RateLimited = Extract<SidecarEvent, { kind: 'rate-limited' }>;
type InsufficientScope = Extract<SidecarEvent, { kind: 'insufficient-scope' }>;

const RATE_LIMIT_SUMMARY_INTERVAL_MS = 5000;
/** Longer: a missing scope needs an operator. */
const SCOPE_SUMMARY_INTERVAL_MS = 60_000;

/** The fields of a line besides time, level and message. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  readonly level: LogLevel;
  /** How many secrets are in use at the same time. Default 1. */
  readonly secretsInUse?: number;
  /** Which requests are logged. Default: all. */
  readonly sampling?: AccessLogSampling;
  /** Default: process.stdout. */
  readonly destination?: LogWriter;
  /** Formats complete lines; must keep their number. Default: JSON. */
  readonly format?: (lines: string) => string;
  /** Default: the process's own clock. */
  readonly clock?: Clock;
}

export interface Log {
  readonly observe: EventObserver;
  /** For the record of each request, and at level `debug` for each attempt and permit. */
  readonly recorders: RecordObservers;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Masks a secret, plain and encoded, in every later line; with the client id also as Basic credentials. To be called for each
   * new value of a secret that rotates, with the one that it replaces.
   */
  readonly registerSecret: (value: string, clientId?: string, replaced?: string) => void;
  /** Sets the lowest level that is logged. */
  readonly setLevel: (level: LogLevel) => void;
  /** Lines dropped since the start. */
  readonly droppedLines: () => number;
  /** Why lines do not reach their destination at the moment; undefined when they do. */
  readonly deliveryProblem: () => LogDeliveryProblem | undefined;
  /** Writes the remaining lines, waiting at most `timeoutMs` for a slow reader; later lines are dropped. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}

export function createLog(options: LogOptions): Log {
  const { level, secretsInUse = 1, sampling, clock = systemClock } = options;
  const redaction = createRedactor(secretsInUse);
  const sink = createSink(options, redaction, (problem) => logRecovery(logger, problem));
  const describeRequest = createAccessDescriber(sampling);
  const { logger, requests } = createEventLogger({ level, clock, sink, describeRequest });
  const repeated = createLogCoalescers(logger, clock);
  const writeAtExit = (): void => {
    requests.writeAll();
    void sink.close(0);
  };
  // A process that crashes still logs why.
  process.once('exit', writeAtExit);
  const recorders = createRecorders(logger, requests);
  return {
    observe: createObserver(logger, repeated),
    recorders,
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    registerSecret: (value, clientId, replaced) => {
      // Buffered lines may hold a secret that this one replaces in the redactor.
      requests.writeAll();
      sink.flush();
      redaction.register(value, clientId, replaced);
    },
    setLevel: (next) => {
      requests.writeAll();
      applyLevel(next, logger, recorders);
    },
    droppedLines: () => sink.droppedLines,
    deliveryProblem: () => sink.deliveryProblem,
    async close(timeoutMs) {
      repeated.rateLimits.stop();
      repeated.scopes.stop();
      requests.writeAll();
      await sink.close(timeoutMs);
      process.off('exit', writeAtExit);
    },
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
  redaction: Redactor,
  onRecovered: (problem: LogDeliveryProblem) => void,
): LogSink {
  const redact = (lines: string): string => redaction.redact(lines);
  return new LogSink({
    writer: destination ?? createDescriptorWriter(process.stdout),
    redact: format === undefined ? redact : (lines) => format(redact(lines)),
    clock,
    onRecovered,
  });
}

function createObserver(logger: Logger, repeated: LogCoalescers): EventObserver {
  return (event) => {
    switch (event.kind) {
      case 'rate-limited':
        repeated.rateLimits.add(event);
        return;
      case 'insufficient-scope':
        repeated.scopes.add(event);
        return;
      case 'configuration-read':
        logReload(logger, event);
        return;
      case 'token-requested':
      case 'token-not-asked':
      case 'token-invalidated':
      case 'token-not-accepted-yet':
      case 'token-accepted-late':
      case 'token-found':
      case 'token-circuit':
      case 'token-scopes-missing':
      case 'credential-rotation':
        logTokenEvent(logger, event);
        return;
      default:
        logProcessEvent(logger, event);
    }
  };
}

function logProcessEvent(logger: Logger, event: SidecarEvent): void {
  switch (event.kind) {
    case 'warning':
      logger.warn(truncate(event.message));
      return;
    case 'refusal-proposed':
      logRefusalProposal(logger, event);
      return;
    case 'stopped':
      logger[event.cut === 0 ? 'info' : 'warn']({ cut: event.cut }, 'stopped');
      return;
    case 'fleet-lost':
      logger.warn({ detail: truncate(event.detail) }, 'connection to the fleet lost: this replica works alone');
      return;
    case 'fleet-degraded':
      logger.warn({ detail: truncate(event.detail) }, 'the fleet is degraded: this replica works alone');
      return;
    case 'fleet-joined':
    case 'listening':
    case 'draining': {
      const { kind, ...fields } = event;
      logger.info(fields, kind.replace('-', ' '));
      return;
    }
    default:
      if (logger.isLevelEnabled('debug')) logDebugEvent(logger, event);
  }
}

function logDebugEvent(logger: Logger, event: SidecarEvent | DebugEvent): void {
  logger.debug(event, event.kind.replaceAll('-', ' '));
}

function logRefusalProposal(logger: Logger, event: Extract<SidecarEvent, { kind: 'refusal-proposed' }>): void {
  const { route, status, refused, accepted, evidence, setting, variable } = event;
  const line = { route, status, refused, accepted, evidence, setting, variable };
  logger.warn(line, 'the upstream seems to refuse calls for their rate with a status that no setting names');
}

function logRecovery(logger: Logger, { code, lostLines: lines }: LogDeliveryProblem): void {
  if (code === undefined) logger.warn({ lines }, 'log lines dropped: standard output is read too slowly');
  else if (lines > 0) logger.warn({ lines, refusal: code }, 'log lines dropped: writing to standard output failed');
  else logger.warn({ lines, refusal: code }, 'log output works again: no line was lost');
}

/** Events that repeat often: one line, then one summary per interval, for each route. */
interface LogCoalescers {
  readonly rateLimits: EventCoalescer<RateLimited>;
  readonly scopes: EventCoalescer<InsufficientScope>;
}

function createLogCoalescers(logger: Logger, clock: Clock): LogCoalescers {
  return {
    rateLimits: createKeyedCoalescer((event: RateLimited) => event.route, {
      clock,
      windowMs: RATE_LIMIT_SUMMARY_INTERVAL_MS,
      onFirst: (event) => logger.warn(rateLimitFields(event), 'rate limited by the upstream'),
      onSummary: (signals, last) => {
        logger.warn({ signals, ...rateLimitFields(last) }, 'still rate limited by the upstream');
      },
    }),
    scopes: createKeyedCoalescer((event: InsufficientScope) => event.route, {
      clock,
      windowMs: SCOPE_SUMMARY_INTERVAL_MS,
      onFirst: (event) => logger.warn(scopeFields(event), 'the upstream requires a scope that the token does not have'),
      onSummary: (requests, last) => {
        logger.warn(
          { requests, ...scopeFields(last) },
          'the upstream still requires a scope that the token does not have',
        );
      },
    }),
  };
}

function scopeFields({ route, needed }: InsufficientScope): LogFields {
  return { route, needed };
}

function rateLimitFields({ route, status, pauseMs, stated, fields }: RateLimited): LogFields {
  return { route, status, pauseMs: Math.round(pauseMs), stated, rateLimitFields: fields };
}
