/** What /status says of the configuration in force, as pure functions. What a reload does is the sidecar's. */

/** The configuration in force, and the last attempt to load it again. */
export interface ConfigurationState {
  /** Epoch milliseconds. */
  readonly loadedWallAt: number;
  /** Undefined before the first. */
  readonly lastReload:
    | {
        /** Epoch milliseconds. */
        readonly wallAt: number;
        readonly outcome: 'ok' | 'refused' | 'invalid';
        /** What has changed, which keys need a restart, or what is wrong; without secrets. */
        readonly lines: readonly string[];
      }
    | undefined;
}

/** One setting in force, fit to be shown: secrets are masked. */
export interface StatusPageSetting {
  /** As in a file; of an entry behind its label: `routes[1].throttle.rate`. */
  readonly key: string;
  readonly value: string;
  /** `default`, `file PATH`, `environment VARIABLE`. */
  readonly origin: string;
}

/** What /status says of it. */
export interface ConfigurationStatus {
  readonly loadedAt: string;
  readonly lastReload: { readonly at: string; readonly outcome: string; readonly detail: string } | null;
}

/** Null when nothing is known of it. */
export function describeConfiguration(state: ConfigurationState | undefined): ConfigurationStatus | null {
  if (state === undefined) return null;
  const { loadedWallAt, lastReload: last } = state;
  if (last === undefined) return { loadedAt: isoTime(loadedWallAt), lastReload: null };
  const detail = last.lines.length === 0 ? 'nothing has changed' : last.lines.join('; ');
  return { loadedAt: isoTime(loadedWallAt), lastReload: { at: isoTime(last.wallAt), outcome: last.outcome, detail } };
}

/** In words: the file says one thing and the process does another. */
export function describeReloadFault(state: ConfigurationState | undefined): string[] {
  const last = state?.lastReload;
  if (last === undefined || last.outcome === 'ok') return [];
  const why = last.outcome === 'refused' ? 'a restart is needed for' : 'it is invalid';
  return [`the configuration file is not in force as it was read last; ${why}: ${last.lines.join('; ')}`];
}

function isoTime(wallAt: number): string {
  return new Date(wallAt).toISOString();
}
