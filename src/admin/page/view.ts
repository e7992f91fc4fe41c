/** The data of one rendering of the page, read at one instant. */
import type { StatusPageSetting } from '../status/configuration.ts';
import type { LoggedEvent } from '../history/event-log.ts';
import type { Status } from '../status/status.ts';
import type { CodeCount, LastMinute, PlotRow } from '../samples/traffic.ts';

export interface PageView {
  readonly status: Status;
  /** Epoch milliseconds. */
  readonly nowWallAt: number;
  readonly lastMinute: LastMinute;
  /** Status codes of the last five minutes. */
  readonly codes: readonly CodeCount[];
  /** Oldest first. */
  readonly rows: readonly PlotRow[];
  /** Newest first. */
  readonly events: readonly LoggedEvent[];
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
}
