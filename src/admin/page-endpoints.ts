/** The status page, its files and its event stream. The code of the page is loaded with the first request for it. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import type { StatusPageSetting } from './status/states.ts';
import { createEventStreams } from './event-stream.ts';
import { readCodes, readLastMinute, readPlotRows } from './samples/traffic.ts';
import type { PageAssets } from './page/assets.ts';
import type * as fragmentsModule from './page/fragments.ts';
import type { PageView } from './page/markup.ts';
import { describeStatus, type StatusInputs } from './status/status.ts';
import type { Activity } from './history/activity.ts';
import type { Sampler } from './samples/sampler.ts';

export interface PageEndpointsOptions {
  readonly readStatus: () => StatusInputs;
  readonly activity: Activity;
  readonly sampler: Sampler;
  /** All settings with secrets masked; undefined when unknown. */
  readonly settings: () => readonly StatusPageSetting[] | undefined;
  readonly clock: Clock;
}

/** Access is checked by the caller. */
export type LoadedPage = Awaited<ReturnType<typeof loadPage>>;

export function createPageLoader(options: PageEndpointsOptions): () => Promise<LoadedPage> {
  let loading: Promise<LoadedPage> | undefined;
  return () => {
    loading ??= loadPage(options).catch((error: unknown) => {
      // The next request tries again.
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

async function loadPage(options: PageEndpointsOptions) {
  const [{ renderStatusPage, STATUS_PAGE_POLICY }, { loadPageAssets, compressResponse }, fragments] = await Promise.all(
    [import('./page/status-page.ts'), import('./page/assets.ts'), import('./page/fragments.ts')],
  );
  const files = await loadPageAssets();
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': STATUS_PAGE_POLICY };
  return {
    assets: files,
    render: (request: IncomingMessage) =>
      compressResponse({ status: 200, headers, body: renderStatusPage(readView(options), files.paths) }, request),
    /** A stream of the changes on the page. */
    events: createStreams(options, files, fragments),
  };
}

function createStreams(options: PageEndpointsOptions, { paths }: PageAssets, renderer: typeof fragmentsModule) {
  let sent = new Map<string, string>();
  return createEventStreams({
    subscribe: (listener) => options.sampler.subscribe(listener),
    createSnapshot: () => {
      const view = readView(options);
      const fragments = renderer.renderFragments(view);
      // Fragments in which this new page differs from the others are sent to all pages with the next update.
      for (const id of Object.keys(renderer.diffFragments(sent, fragments))) sent.delete(id);
      const texts = Object.entries(fragments).map(([id, { text }]) => [id, text] as const);
      const common = { now: view.nowWallAt, verdict: view.status.verdict };
      return { ...common, page: paths['page.js'], rows: view.rows, fragments: Object.fromEntries(texts) };
    },
    createUpdate: () => {
      const view = readView(options);
      const fragments = renderer.renderFragments(view);
      const changed = renderer.diffFragments(sent, fragments);
      sent = renderer.snapshotFragments(fragments);
      return { now: view.nowWallAt, verdict: view.status.verdict, fragments: changed, row: view.rows.at(-1) };
    },
  });
}

const CODES_WINDOW_MS = 300_000;

function readView({ readStatus, activity, sampler, settings, clock }: PageEndpointsOptions): PageView {
  const status = describeStatus(readStatus());
  const samples = sampler.read();
  const nowWallAt = clock.wallNow();
  return {
    status,
    nowWallAt,
    lastMinute: readLastMinute(samples),
    codes: readCodes(samples, CODES_WINDOW_MS),
    rows: readPlotRows(sampler.ring, status.throttles, nowWallAt - samples.now),
    events: activity.eventLog.read(),
    settings: settings(),
  };
}
