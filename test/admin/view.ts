/** Builds the view and the HTML of the page from states of the parts. */
import { describeStatus } from '../../src/admin/status/status.ts';
import type { StatusInputs } from '../../src/admin/status/status.ts';
import { renderStatusPage } from '../../src/admin/page/status-page.ts';
import type { PageAssetPaths } from '../../src/admin/page/assets.ts';
import type { PageView } from '../../src/admin/page/markup.ts';
import { evaluateVerdict } from '../../src/admin/verdict/verdict.ts';
import { readLastMinute } from '../../src/admin/samples/traffic.ts';
import type { RunEverySecond } from '../../src/admin/samples/sampler.ts';
import type { Cancel, Clock } from '../../src/platform/clock.ts';
import { PlayedSamples } from './samples/played-samples.ts';
import { unpaced, validToken } from './states.ts';

const PLACES: PageAssetPaths = {
  ...{ 'page.js': '/assets/page.js', 'plots.js': '/assets/plots.js', 'uPlot.js': '/assets/uPlot.js' },
  ...{ 'page.css': '/assets/page.css', 'uPlot.css': '/assets/uPlot.css', 'icon.svg': '/assets/icon.svg' },
};

const NOW = Date.UTC(2026, 10, 1, 0, 30);
const NOTHING_SEEN = { wallNow: NOW, faults: [], pending: [], settings: undefined };

/** A sidecar that holds a token, has just begun and has seen nothing. */
function viewOf(states: Partial<StatusInputs> = {}, seen: Partial<PageView> = {}): PageView {
  const known = {
    ...{ version: '1.2.3', uptimeMs: 61_000, draining: false, tokens: [validToken], throttles: [unpaced], alerts: [] },
    ...states,
  };
  const { samples } = new PlayedSamples();
  const status = describeStatus({ verdict: evaluateVerdict({ ...known, ...NOTHING_SEEN, samples }), ...known });
  return {
    ...{
      status,
      nowWallAt: NOW,
      lastMinute: readLastMinute(samples),
      rows: [],
      settings: undefined,
    },
    ...{ codes: [], events: [] },
    ...seen,
  };
}

export function pageOf(states: Partial<StatusInputs> = {}, seen: Partial<PageView> = {}): string {
  return renderStatusPage(viewOf(states, seen), PLACES);
}

/** Runs on a manual clock. */
export function eachSecondOf(clock: Clock): RunEverySecond {
  return (run) => {
    let cancel: Cancel = () => undefined;
    const arm = (): void => {
      cancel = clock.after(1000, () => {
        arm();
        run();
      });
    };
    arm();
    return () => {
      cancel();
    };
  };
}

/** The text of a page or of a part of it, as a reader finds it, without tags. */
export function textOf(html: string): string {
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')
    .trim();
}
