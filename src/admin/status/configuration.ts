/** The configuration as /status shows it: the active one and the last reload (pure). composition/reload.ts reloads it. */
import { describeReloadFailure } from '../../telemetry/event-texts.ts';
import type { ReloadOutcome } from '../../telemetry/events.ts';

export interface ConfigurationState {
  /** Epoch milliseconds. */
  readonly loadedWallAt: number;
  readonly isReloadable: boolean;
  readonly lastReload:
    | {
        /** Epoch milliseconds. */
        readonly wallAt: number;
        readonly outcome: ReloadOutcome;
        /** What has changed, which keys need a restart, or what is invalid; without secrets. */
        readonly lines: readonly string[];
      }
    | undefined;
}

/** One active setting; secrets are masked. */
export interface StatusPageSetting {
  /** As in a configuration file; in a list with its index: `routes[1].throttle.rate`. */
  readonly key: string;
  readonly value: string;
  /** `default`, `file PATH`, `environment VARIABLE`. */
  readonly origin: string;
}

/** Why the configuration file is not the active configuration; empty when it is. */
export function describeReloadFault(state: ConfigurationState | undefined): string[] {
  const last = state?.lastReload;
  if (last === undefined || last.outcome === 'ok') return [];
  return [`the configuration file was not reloaded; ${describeReloadFailure(last.outcome, last.lines)}`];
}
