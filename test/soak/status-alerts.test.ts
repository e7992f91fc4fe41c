/**
 * `npm run soak:alerts`. The status page beside a real Prometheus with the rules that ship: in each situation both have the same alerts.
 */
import { expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { pollUntil } from '../support/prometheus.ts';
import { startAlertReader } from '../support/prometheus-alerts.ts';
import { SCENE_ALERTS, SCENE_NAMES, startScene } from '../e2e/status-scenes.ts';
import type { SceneName } from '../e2e/status-scenes.ts';

interface SeenAlerts {
  readonly name: SceneName;
  readonly page: readonly string[];
  readonly prometheus: readonly string[];
}

async function readPage(url: string): Promise<string[]> {
  const { alerts } = (await (await fetch(`${url}status`)).json()) as Status;
  return [...new Set(alerts.map(({ name }) => name))].sort();
}

it('the page has the alerts that are pending or firing', async () => {
  await using stack = new AsyncDisposableStack();
  const scenes = new Map<SceneName, string>();
  for (const name of SCENE_NAMES) scenes.set(name, stack.use(await startScene(name)).url);
  const { readAlerts } = await startAlertReader([...scenes.values()]);
  const compare = (): Promise<SeenAlerts[]> =>
    Promise.all(
      [...scenes].map(async ([name, url]) => ({ name, page: await readPage(url), prometheus: await readAlerts(url) })),
    );
  const isAsExpected = ({ name, page, prometheus }: SeenAlerts): boolean =>
    String(page) === String(prometheus) && page.includes(SCENE_ALERTS[name] ?? '') === name in SCENE_ALERTS;
  const seen = await pollUntil(compare, (all) => all.every(isAsExpected));
  console.table(
    seen.map(({ name, page, prometheus }) => ({ name, page: String(page), prometheus: String(prometheus) })),
  );
  for (const { name, page, prometheus } of seen) {
    expect([name, page]).toEqual([name, prometheus]);
    expect([name, page.includes(SCENE_ALERTS[name] ?? '')]).toEqual([name, name in SCENE_ALERTS]);
  }
}, 150_000);
