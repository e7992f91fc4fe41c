/** Opens the log's level switch and, when the environment asks for it, tracing. */
import { createLogLevelSwitch, type LogLevelSwitch } from '../admin/control/log-level-switch.ts';
import { systemClock } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import type { StartTracer } from '../exchange/request-tracer.ts';
import type { EventObserver, LogLevel } from '../telemetry/events.ts';
import type { Log, LogOptions } from '../telemetry/log/log.ts';
import { openTracing } from '../telemetry/tracing/open-tracing.ts';

export interface Observability {
  readonly observe: EventObserver;
  /** Undefined: no tracing. */
  readonly startTracer: StartTracer | undefined;
  /** Undefined unless `admin.allowLogLevel`. */
  readonly logLevelSwitch: LogLevelSwitch | undefined;
  /** For a changed `log.level`. */
  readonly setLogLevel: (level: LogLevel) => void;
  /** Sends the remaining spans, waiting at most `timeoutMs`. The log stays open. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}

/** @param log receives the faults of both */
export async function openObservability(config: Config, version: string, log: Log): Promise<Observability> {
  const tracing = await openTracing({
    env: process.env,
    version,
    tokenServers: findTokenServers(config),
    clock: systemClock,
    observe: log.observe,
  });
  const logLevels = config.admin.allowLogLevel
    ? createLogLevelSwitch({
        configured: config.log.level,
        apply: log.setLevel,
        report: (message) => log.warn(message),
        clock: systemClock,
      })
    : undefined;
  return {
    observe:
      tracing === undefined
        ? log.observe
        : (event) => {
            log.observe(event);
            tracing.observe(event);
          },
    startTracer: tracing?.startTracer,
    logLevelSwitch: logLevels,
    setLogLevel: logLevels?.configure ?? log.setLevel,
    close: async (timeoutMs) => {
      await tracing?.close(timeoutMs);
    },
  };
}

/** The sampling options of the log. */
export function logSamplingOptions({ log }: Config): NonNullable<LogOptions['sampling']> {
  return { share: log.sample, slowMs: log.slowMs, random: Math.random };
}

/** Token endpoint, or issuer, by the name of the credential. */
function findTokenServers({ credentials }: Config): ReadonlyMap<string, URL> {
  return new Map(
    credentials.map(({ name, auth: { endpoint } }) => [
      name,
      endpoint.kind === 'url' ? endpoint.url : new URL(endpoint.issuer),
    ]),
  );
}
