/**
 * What the admin port does for people: the status page, its files and its events. Nothing of the page is loaded before somebody asks
 * for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import type { AdminResponse } from './admin-response.ts';
import type { StatusPageSetting } from './status/configuration.ts';
import { createEventStreams } from './event-stream.ts';
import type { PlotRow } from './history/history.ts';
import type { PageAssets } from './page/assets.ts';
import type { Fragments } from './page/fragments.ts';
import type * as fragmentsModule from './page/fragments.ts';
import type { PageView } from './page/view.ts';
import { describeStatus } from './status/status.ts';
import type { StatusInputs } from './status/status-shape.ts';
import type { ActivityRecorder } from './history/activity-recorder.ts';

export interface PageEndpointsOptions {
  readonly readStatus: () => StatusInputs;
  readonly activity: ActivityRecorder;
  /** Masked; undefined when nobody knows them. */
  readonly settings: () => readonly StatusPageSetting[] | undefined;
  readonly clock: Clock;
}

export interface PageEndpoints {
  page(request: IncomingMessage): Promise<AdminResponse>;
  /** A stream of what changes on the page. */
  events(): Promise<AdminResponse>;
  /** Undefined for a path that is none of the page's files. */
  asset(path: string, request: IncomingMessage): Promise<AdminResponse | undefined>;
}

/** Who may ask is the server's to judge. */
export function createPageEndpoints(options: PageEndpointsOptions): PageEndpoints {
  let loading: Promise<LoadedPage> | undefined;
  const load = (): Promise<LoadedPage> => {
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
    asset: async (path, request) => (await load()).assets.respond(path, request),
  };
}

interface LoadedPage {
  readonly assets: PageAssets;
  page(request: IncomingMessage): Promise<AdminResponse>;
  events(): AdminResponse;
}

async function loadPage(options: PageEndpointsOptions): Promise<LoadedPage> {
  const [{ renderStatusPage, STATUS_PAGE_POLICY }, { loadPageAssets, compressResponse }, fragments] = await Promise.all(
    [import('./page/status-page.ts'), import('./page/assets.ts'), import('./page/fragments.ts')],
  );
  const files = await loadPageAssets();
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': STATUS_PAGE_POLICY };
  const streams = createStreams(options, files, fragments);
  return {
    assets: files,
    page: (request) =>
      compressResponse({ status: 200, headers, body: renderStatusPage(readView(options), files.paths) }, request),
    events: () => streams.respond(),
  };
}

/** What page/fragments.ts exports. */
type FragmentsModule = typeof fragmentsModule;

function createStreams(options: PageEndpointsOptions, { paths }: PageAssets, drawing: FragmentsModule) {
  let told = new Map<string, string>();
  const say = (view: PageView, fragments: Fragments) => {
    const changed = drawing.diffFragments(told, fragments);
    told = drawing.snapshotFragments(fragments);
    return { now: view.nowWallAt, verdict: drawing.evaluateView(view), fragments: changed };
  };
  return createEventStreams({
    subscribe: (hear) => options.activity.subscribe(hear),
    createSnapshot: () => {
      const view = readView(options);
      const fragments = drawing.renderFragments(view);
      // Where the newcomer sees something else than the others, all are told in the next second, even if it is as before then.
      for (const id of Object.keys(drawing.diffFragments(told, fragments))) told.delete(id);
      const everything = Object.entries(fragments).map(([id, { text }]) => [id, text] as const);
      const common = { now: view.nowWallAt, verdict: drawing.evaluateView(view) };
      return { ...common, page: paths['page.js'], rows: view.rows, fragments: Object.fromEntries(everything) };
    },
    createUpdate: (row: PlotRow) => {
      const view = readView(options);
      return { ...say(view, drawing.renderFragments(view)), row };
    },
  });
}

function readView({ readStatus, activity, settings, clock }: PageEndpointsOptions): PageView {
  const { history, eventLog } = activity;
  return {
    status: describeStatus(readStatus()),
    nowWallAt: clock.wallNow(),
    lastMinute: history.lastMinute(),
    minutes: history.minutes.read(),
    codes: history.minutes.readCodes(),
    recentCodes: history.minutes.readCodes(2),
    rows: history.rows(),
    events: eventLog.read(),
    settings: settings(),
  };
}
