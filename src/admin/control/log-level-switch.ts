/**
 * The level of the log as it can be changed while the sidecar runs: for good, or for a while, after which it is the configured one
 * again. Each change is told so that the more talkative of the two levels logs it. Who may change it is judged in log-level.ts.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';

/** From the most talkative to none at all. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type AdminLogLevel = (typeof LOG_LEVELS)[number];

export interface LogLevelState {
  readonly level: AdminLogLevel;
  /** The configured level, when it comes back by itself. */
  readonly fallsBackTo?: AdminLogLevel;
  readonly fallsBackInMs?: number;
}

export interface LogLevelSwitch {
  state(): LogLevelState;
  /** @param forMs undefined: until somebody changes it again, or the configuration is read again */
  change(level: AdminLogLevel, forMs: number | undefined): void;
  /** The configuration says so, now: what was changed here is over. Nothing is told. */
  readonly configure: (level: AdminLogLevel) => void;
}

export interface LogLevelSwitchOptions {
  /** The configured level, which is in force. */
  readonly configured: AdminLogLevel;
  readonly apply: (level: AdminLogLevel) => void;
  readonly report: (message: string) => void;
  readonly clock: Clock;
}

export function createLogLevelSwitch(options: LogLevelSwitchOptions): LogLevelSwitch {
  const { apply, report, clock } = options;
  let { configured } = options;
  let level = configured;
  let fallBack: { readonly at: number; readonly cancel: Cancel } | undefined;
  const move = (next: AdminLogLevel, message: string): void => {
    const isQuieter = LOG_LEVELS.indexOf(next) > LOG_LEVELS.indexOf(level);
    level = next;
    if (isQuieter) report(message);
    apply(next);
    if (!isQuieter) report(message);
  };
  const forget = (): void => {
    fallBack?.cancel();
    fallBack = undefined;
  };
  return {
    state: () =>
      fallBack === undefined
        ? { level }
        : { level, fallsBackTo: configured, fallsBackInMs: Math.max(0, Math.round(fallBack.at - clock.now())) },
    change(next, forMs) {
      forget();
      const spell = forMs === undefined ? '' : ` for ${String(Math.round(forMs / 1000))} s, then ${configured}`;
      move(next, `the log level is ${next}${spell}: so it was asked on the admin port`);
      if (forMs === undefined) return;
      const cancel = clock.after(forMs, () => {
        fallBack = undefined;
        move(configured, `the log level is ${configured} again`);
      });
      fallBack = { at: clock.now() + forMs, cancel };
    },
    configure(next) {
      forget();
      configured = next;
      level = next;
      apply(next);
    },
  };
}
