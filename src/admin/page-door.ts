/**
 * What the admin port does for people: the status page, its files and its events. Nothing of the page is loaded before somebody asks
 * for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import type { Answer } from './answers.ts';
import type { ShownSetting } from './status/configuration.ts';
import { createEventStreams } from './event-stream.ts';
import type { Row } from './history/history.ts';
import type { PageFiles } from './page/assets.ts';
import type { Fragments } from './page/fragments.ts';
import type * as fragmentsModule from './page/fragments.ts';
import type { View } from './page/view.ts';
import { describeStatus } from './status/status.ts';
import type { AdminStates } from './status/status-shape.ts';
import type { Watch } from './history/watch.ts';

export interface PageDoorOptions {
  readonly states: () => AdminStates;
  readonly watch: Watch;
  /** Masked; undefined when nobody knows them. */
  readonly settings: () => readonly ShownSetting[] | undefined;
  readonly clock: Clock;
}

export interface PageDoor {
  page(request: IncomingMessage): Promise<Answer>;
  /** A stream of what changes on the page. */
  events(): Promise<Answer>;
  /** Undefined for a path that is none of the page's files. */
  file(path: string, request: IncomingMessage): Promise<Answer | undefined>;
}

/** Who may ask is the server's to judge. */
export function createPageDoor(options: PageDoorOptions): PageDoor {
  let loading: Promise<Loaded> | undefined;
  const load = (): Promise<Loaded> => {
    loading ??= loadPage(options).catch((error: unknown) => {
      // A file that could not be read now may be there the next time.
      loading = undefined;
      throw error;
    });
    return loading;
  };
  return {
    page: async (request) => (await load()).page(request),
    events: async () => (await load()).events(),
    file: async (path, request) => (await load()).files.answer(path, request),
  };
}

interface Loaded {
  readonly files: PageFiles;
  page(request: IncomingMessage): Promise<Answer>;
  events(): Answer;
}

async function loadPage(options: PageDoorOptions): Promise<Loaded> {
  const [{ renderStatusPage, STATUS_PAGE_POLICY }, { loadPageFiles, packed }, fragments] = await Promise.all([
    import('./page/status-page.ts'),
    import('./page/assets.ts'),
    import('./page/fragments.ts'),
  ]);
  const files = await loadPageFiles();
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': STATUS_PAGE_POLICY };
  const streams = createStreams(options, files, fragments);
  return {
    files,
    page: (request) =>
      packed({ status: 200, headers, body: renderStatusPage(readView(options), files.places) }, request),
    events: () => streams.answer(),
  };
}

/** What page/fragments.ts exports. */
type FragmentDrawing = typeof fragmentsModule;

function createStreams(options: PageDoorOptions, { places }: PageFiles, drawing: FragmentDrawing) {
  let told = new Map<string, string>();
  const say = (view: View, fragments: Fragments) => {
    const changed = drawing.changedSince(told, fragments);
    told = drawing.remember(fragments);
    return { now: view.nowWallAt, verdict: drawing.judgeView(view), fragments: changed };
  };
  return createEventStreams({
    follow: (hear) => options.watch.follow(hear),
    greet: () => {
      const view = readView(options);
      const fragments = drawing.renderFragments(view);
      // Where the newcomer sees something else than the others, all are told in the next second, even if it is as before then.
      for (const id of Object.keys(drawing.changedSince(told, fragments))) told.delete(id);
      const everything = Object.entries(fragments).map(([id, { text }]) => [id, text] as const);
      const common = { now: view.nowWallAt, verdict: drawing.judgeView(view) };
      return { ...common, page: places['page.js'], rows: view.rows, fragments: Object.fromEntries(everything) };
    },
    tell: (row: Row) => {
      const view = readView(options);
      return { ...say(view, drawing.renderFragments(view)), row };
    },
  });
}

function readView({ states, watch, settings, clock }: PageDoorOptions): View {
  const { history, happenings } = watch;
  return {
    status: describeStatus(states()),
    nowWallAt: clock.wallNow(),
    lastMinute: history.lastMinute(),
    minutes: history.minutes.read(),
    codes: history.minutes.readCodes(),
    latestCodes: history.minutes.readCodes(2),
    rows: history.rows(),
    happenings: happenings.read(),
    settings: settings(),
  };
}
