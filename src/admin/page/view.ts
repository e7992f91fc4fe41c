/** The data of one rendering of the page, read at one instant. */
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
  /** Status codes of the last five minutes. */
  readonly codes: readonly CodeCount[];
  /** Status codes of the current and the previous minute. */
  readonly recentCodes: readonly CodeCount[];
  /** Oldest first. */
  readonly rows: readonly PlotRow[];
  /** Newest first. */
  readonly events: readonly LoggedEvent[];
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
}
