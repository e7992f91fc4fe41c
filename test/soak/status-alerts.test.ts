/**
 * `npm run soak:alerts`. The status page beside a real Prometheus with the rules that ship: in each situation both have the same critical alerts.
 */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ALERTS_OUTSIDE_PAGE } from '../../src/admin/alerts/alert-rules.ts';
import type { Status } from '../../src/admin/status/status-shape.ts';
import { pollUntil, startPrometheus } from '../support/prometheus.ts';
import { SCENE_ALERTS, SCENE_NAMES, startScene } from '../e2e/status-scenes.ts';
import type { SceneName } from '../e2e/status-scenes.ts';

const RULES = ['recording.yaml', 'alerts.yaml'].map((file) =>
  join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', file),
);
const OUTSIDE: ReadonlySet<string> = new Set(ALERTS_OUTSIDE_PAGE);

it('the page is critical exactly where a critical alert is pending or firing', async () => {
  await using stack = new AsyncDisposableStack();
  const scenes = new Map<SceneName, string>();
  for (const name of SCENE_NAMES) scenes.set(name, stack.use(await startScene(name)).url);
  const prometheus = await startPrometheus({ targets: [...scenes.values()], rules: RULES });
  const readPage = async (url: string): Promise<string[]> => {
    const { alerts } = (await (await fetch(`${url}status`)).json()) as Status;
    return alerts.filter(({ severity }) => severity === 'critical').map(({ name }) => name);
  };
  const readPrometheus = async (url: string): Promise<string[]> => {
    const series = await prometheus.query(`ALERTS{severity="critical",instance="${new URL(url).host}"}`);
    return series.map(({ metric }) => metric.alertname ?? '').filter((name) => !OUTSIDE.has(name));
  };
  const compare = () =>
    Promise.all(
      [...scenes].map(async ([name, url]) => ({
        name,
        page: (await readPage(url)).sort(),
        prometheus: (await readPrometheus(url)).sort(),
      })),
    );
  const seen = await pollUntil(
    compare,
    (all) =>
      all.every(
        ({ name, page, prometheus: theirs }) =>
          String(page) === String(theirs) && page.includes(SCENE_ALERTS[name] ?? '') === name in SCENE_ALERTS,
      ),
    60_000,
  );
  console.table(
    seen.map(({ name, ...both }) => ({ name, page: String(both.page), prometheus: String(both.prometheus) })),
  );
  for (const { name, page, prometheus: theirs } of seen) {
    expect([name, page]).toEqual([name, theirs]);
    expect([name, page.includes(SCENE_ALERTS[name] ?? '')]).toEqual([name, name in SCENE_ALERTS]);
  }
}, 150_000);
