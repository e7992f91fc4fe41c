/**
 * The log: JSON lines on stdout, one per request at `info`. Turns events into lines (pino), takes secrets and terminal
 * controls out of them (redaction) and hands them to a sink that neither blocks nor grows. Which events there are is
 * told in events.ts.
 */
import type { Logger } from 'pino';
import { systemClock } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { createAccessDescriber } from './access-lines.ts';
import type { AccessLogSampling } from './access-lines.ts';
import { createKeyedCoalescer } from './damper.ts';
import type { EventCoalescer } from './damper.ts';
import type { LogDeliveryProblem, EventObserver, SidecarEvent } from '../events.ts';
import { createEventLogger, type LogLevel } from './lines.ts';
import { LogSink } from './log-sink.ts';
import { createDescriptorWriter } from './log-writer.ts';
import type { LogWriter } from './log-writer.ts';
import { createRedactor } from './redaction.ts';
import type { Redactor } from './redaction.ts';
import type { RequestLogBatch } from './request-lines.ts';
import { truncate } from './shown.ts';
import { logReload } from './reload-lines.ts';
import { logTokenEvent } from './token-lines.ts';

type RateLimited = Extract<SidecarEvent, { kind: 'rate-limited' }>;
type InsufficientScope = Extract<SidecarEvent, { kind: 'insufficient-scope' }>;
type RateLimitShape = Extract<SidecarEvent, { kind: 'rate-limit-shape' }>;

const RATE_LIMIT_SUMMARY_INTERVAL_MS = 5000;
/** Nothing changes about it until somebody acts. */
const SCOPE_SUMMARY_INTERVAL_MS = 60_000;

/** What a line carries besides time, level and message. */
export type LogFields = Readonly<Record<string, unknown>>;

export type { LogLevel };

export interface LogOptions {
  readonly level: LogLevel;
  /** Secrets that are in use at a time: as many more are remembered. Default 1. */
  readonly secretsInUse?: number;
  /** Which requests are logged. Default: every one. */
  readonly sampling?: AccessLogSampling;
  /** Default: process.stdout. */
  readonly destination?: LogWriter;
  /** The form in which lines are written; must leave their number as it is. Default: JSON as it is. */
  readonly format?: (lines: string) => string;
  /** Default: the process's own clock. */
  readonly clock?: Clock;
}

export interface Log {
  readonly observe: EventObserver;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Masks a secret, plain and encoded, in every later line. With the client id also their Basic form. To be called with
   * each new value of a secret that rotates.
   */
  readonly registerSecret: (value: string, clientId?: string) => void;
  /** From now on lines are logged from this level on. */
  readonly setLevel: (level: LogLevel) => void;
  /** Lines lost since the start because the destination did not take them as a whole. */
  readonly droppedLines: () => number;
  /** What keeps lines from their destination at the moment; undefined: nothing does. */
  readonly deliveryProblem: () => LogDeliveryProblem | undefined;
  /** Writes what is left, waiting at most `timeoutMs` for a slow reader; later lines are dropped. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}

/** Opens the log. */
export function createLog(options: LogOptions): Log {
  const { level, secretsInUse = 1, sampling, clock = systemClock } = options;
  const redaction = createRedactor(secretsInUse);
  const sink = createSink(options, redaction, (trouble) => logRecovery(logger, trouble));
  const describeRequest = createAccessDescriber(sampling);
  const { logger, requests } = createEventLogger({ level, clock, sink, describeRequest });
  const storms = createLogCoalescers(logger, clock);
  const lastWords = (): void => {
    requests.writeAll();
    void sink.close(0);
  };
  // A process that ends by a fault still says why: a write is tried at once, and never waited for.
  process.once('exit', lastWords);
  return {
    observe: createObserver(logger, storms, requests),
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    registerSecret: (value, clientId) => {
      // What was gathered before may hold a secret that this one pushes out.
      requests.writeAll();
      sink.flush();
      redaction.register(value, clientId);
    },
    setLevel: (next) => {
      requests.writeAll();
      logger.level = next;
    },
    droppedLines: () => sink.droppedLines,
    deliveryProblem: () => sink.deliveryProblem,
    async close(timeoutMs) {
      storms.rateLimits.stop();
      storms.scopes.stop();
      requests.writeAll();
      await sink.close(timeoutMs);
      process.off('exit', lastWords);
    },
  };
}

function createSink(
  { destination, format, clock = systemClock }: LogOptions,
  redaction: Redactor,
  onRecovered: (trouble: LogDeliveryProblem) => void,
): LogSink {
  const redact = (lines: string): string => redaction.redact(lines);
  return new LogSink({
    writer: destination ?? createDescriptorWriter(process.stdout),
    redact: format === undefined ? redact : (lines) => format(redact(lines)),
    clock,
    onRecovered,
  });
}

function createObserver(logger: Logger, storms: LogCoalescers, requests: RequestLogBatch): EventObserver {
  return (event) => {
    switch (event.kind) {
      case 'request-ended':
        if (logger.isLevelEnabled('info')) requests.add(event);
        return;
      case 'rate-limited':
        storms.rateLimits.add(event);
        return;
      case 'insufficient-scope':
        storms.scopes.add(event);
        return;
      case 'rate-limit-shape':
        logRateLimitShape(logger, event);
        return;
      case 'configuration-read':
        logReload(logger, event);
        return;
      case 'token-requested':
      case 'token-not-asked':
      case 'token-invalidated':
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

/** What becomes of the process itself; the rest is for whoever looks for a fault. */
function logProcessEvent(logger: Logger, event: SidecarEvent): void {
  switch (event.kind) {
    case 'warning':
      logger.warn(truncate(event.message));
      return;
    case 'stopped':
      logger[event.cut === 0 ? 'info' : 'warn']({ cut: event.cut }, 'stopped');
      return;
    case 'fleet-lost':
      logger.warn({ detail: truncate(event.detail) }, 'fleet lost: going on alone');
      return;
    case 'fleet-joined':
    case 'listening':
    case 'draining': {
      const { kind, ...fields } = event;
      logger.info(fields, kind.replace('-', ' '));
      return;
    }
    default:
      if (logger.isLevelEnabled('debug')) logger.debug(event, event.kind.replaceAll('-', ' '));
  }
}

function logRateLimitShape(logger: Logger, { route, on, status, shape, fields }: RateLimitShape): void {
  const line = { route, on, status, shape: truncate(shape), rateLimitFields: fields };
  logger[on === 'accepted' ? 'info' : 'warn'](line, 'new shape of rate-limit answer');
}

function logRecovery(logger: Logger, { code, lostLines: lines }: LogDeliveryProblem): void {
  if (code === undefined) logger.warn({ lines }, 'log lines were dropped: their reader is too slow');
  else if (lines > 0) logger.warn({ lines, refusal: code }, 'log lines were dropped: their destination refused them');
  else logger.warn({ lines, refusal: code }, 'the log is written again: no line was lost');
}

/** What comes in storms is one line, then one line each few seconds, for every route. */
interface LogCoalescers {
  readonly rateLimits: EventCoalescer<RateLimited>;
  readonly scopes: EventCoalescer<InsufficientScope>;
}

function createLogCoalescers(logger: Logger, clock: Clock): LogCoalescers {
  return {
    rateLimits: createKeyedCoalescer((event: RateLimited) => event.route, {
      clock,
      windowMs: RATE_LIMIT_SUMMARY_INTERVAL_MS,
      onFirst: (event) => logger.warn(rateLimitFields(event), 'the upstream limits the rate'),
      onSummary: (signals, last) => {
        logger.warn({ signals, ...rateLimitFields(last) }, 'the upstream still limits the rate');
      },
    }),
    scopes: createKeyedCoalescer((event: InsufficientScope) => event.route, {
      clock,
      windowMs: SCOPE_SUMMARY_INTERVAL_MS,
      onFirst: (event) => logger.warn(scopeFields(event), 'the upstream asks for a scope that the token does not have'),
      onSummary: (requests, last) => {
        logger.warn({ requests, ...scopeFields(last) }, 'the upstream still asks for a scope');
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
