/** Everything that one drawing of the page shows, read at one instant. */
import type { StatusPageSetting } from '../status/configuration.ts';
import type { LoggedEvent } from '../history/event-log.ts';
import type { LastMinute, PlotRow } from '../history/history.ts';
import type { CodeCount, Minute } from '../history/minutes.ts';
import type { Status } from '../status/status-shape.ts';

export interface PageView {
  readonly status: Status;
  /** Epoch milliseconds. */
  readonly nowWallAt: number;
  readonly lastMinute: LastMinute;
  /** Newest first. */
  readonly minutes: readonly Minute[];
  /** Of the last five minutes. */
  readonly codes: readonly CodeCount[];
  /** Of the present minute and the one before. */
  readonly recentCodes: readonly CodeCount[];
  /** Oldest first. */
  readonly rows: readonly PlotRow[];
  /** Newest first. */
  readonly events: readonly LoggedEvent[];
  /** Masked; undefined: nobody knows them. */
  readonly settings: readonly StatusPageSetting[] | undefined;
}
