/**
 * Changes the log level while the sidecar runs, permanently or for a limited time. Each change is logged at the more verbose of the
 * two levels. log-level-endpoint.ts checks access.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import { LOG_LEVELS, type LogLevel } from '../../telemetry/events.ts';

export interface LogLevelState {
  readonly level: LogLevel;
  /** The configured level, while a temporary level is set. */
  readonly fallsBackTo?: LogLevel;
  readonly fallsBackInMs?: number;
}

export interface LogLevelSwitch {
  state(): LogLevelState;
  /** @param forMs undefined: until the next change or configuration reload */
  change(level: LogLevel, forMs: number | undefined): void;
  /** Applies a reloaded configuration and ends a temporary level. Logs nothing. */
  readonly configure: (level: LogLevel) => void;
}

export interface LogLevelSwitchOptions {
  /** The configured level, which is active at first. */
  readonly configured: LogLevel;
  readonly apply: (level: LogLevel) => void;
  readonly report: (message: string) => void;
  readonly clock: Clock;
}

export function createLogLevelSwitch(options: LogLevelSwitchOptions): LogLevelSwitch {
  const { apply, report, clock } = options;
  let { configured } = options;
  let level = configured;
  let pendingReset: { readonly at: number; readonly cancel: Cancel } | undefined;
  const setLevel = (next: LogLevel, message: string): void => {
    const isQuieter = LOG_LEVELS.indexOf(next) > LOG_LEVELS.indexOf(level);
    level = next;
    if (isQuieter) report(message);
    apply(next);
    if (!isQuieter) report(message);
  };
  const cancelReset = (): void => {
    pendingReset?.cancel();
    pendingReset = undefined;
  };
  return {
    state: () =>
      pendingReset === undefined
        ? { level }
        : { level, fallsBackTo: configured, fallsBackInMs: Math.max(0, Math.round(pendingReset.at - clock.now())) },
    change(next, forMs) {
      cancelReset();
      const duration = forMs === undefined ? '' : ` for ${String(Math.round(forMs / 1000))} s, then ${configured}`;
      setLevel(next, `log level changed on the admin port to ${next}${duration}`);
      if (forMs === undefined) return;
      const cancel = clock.after(forMs, () => {
        pendingReset = undefined;
        setLevel(configured, `log level reset to ${configured}`);
      });
      pendingReset = { at: clock.now() + forMs, cancel };
    },
    configure(next) {
      cancelReset();
      configured = next;
      level = next;
      apply(next);
    },
  };
}
