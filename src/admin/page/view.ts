/** Everything that one drawing of the page shows, read at one instant. */
import type { ShownSetting } from '../status/configuration.ts';
import type { Happening } from '../history/happenings.ts';
import type { LastMinute, Row } from '../history/history.ts';
import type { CodeCount, Minute } from '../history/minutes.ts';
import type { Status } from '../status/status-shape.ts';

export interface View {
  readonly status: Status;
  /** Epoch milliseconds. */
  readonly nowWallAt: number;
  readonly lastMinute: LastMinute;
  /** Newest first. */
  readonly minutes: readonly Minute[];
  /** Of the last five minutes. */
  readonly codes: readonly CodeCount[];
  /** Of the present minute and the one before. */
  readonly latestCodes: readonly CodeCount[];
  /** Oldest first. */
  readonly rows: readonly Row[];
  /** Newest first. */
  readonly happenings: readonly Happening[];
  /** Masked; undefined: nobody knows them. */
  readonly settings: readonly ShownSetting[] | undefined;
}
