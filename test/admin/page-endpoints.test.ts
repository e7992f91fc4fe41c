/** The updates of pages that were opened at different times. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { createPageLoader } from '../../src/admin/page-endpoints.ts';
import { createActivity } from '../../src/admin/history/activity.ts';
import { Sampler } from '../../src/admin/samples/sampler.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { healthy, unpaced, validToken } from './states.ts';

interface Update {
  readonly fragments: Readonly<Record<string, string>>;
}

/** What the page shows by now: all updates, the newest last. */
class Page extends EventEmitter {
  readonly socket = {};
  readonly destroyed = false;
  readonly writableLength = 0;
  readonly shown: Record<string, string> = {};

  write(text: string): boolean {
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? '';
    Object.assign(this.shown, (JSON.parse(data) as Update).fragments);
    return true;
  }
}

it('a page that is opened between two updates shows the same as the others after the next', async () => {
  let queued = 0;
  let second = (): void => undefined;
  const throttles = () => [{ ...unpaced, queued }];
  const eachSecond = (run: () => void) => {
    second = run;
    return () => undefined;
  };
  const clock = { ...systemClock, now: () => 0, wallNow: () => 0 };
  const source = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };
  const sampler = new Sampler({ clock, source, runEverySecond: eachSecond });
  sampler.start();
  const common = {
    version: '1.2.3',
    verdict: healthy,
    alerts: [],
    uptimeMs: 0,
    draining: false,
    fleet: undefined,
    insufficientScopes: [],
  };
  const states = () => ({ ...common, tokens: [validToken], throttles: throttles(), configuration: undefined });
  const loadPage = createPageLoader({
    ...{ readStatus: states, activity: createActivity(clock), sampler, settings: () => undefined, clock },
  });
  const open = async (): Promise<Page> => {
    const page = new Page();
    (await loadPage()).events().stream?.(page as unknown as ServerResponse);
    return page;
  };

  const first = await open();
  second();
  queued = 7;
  const other = await open();
  expect(other.shown).not.toEqual(first.shown);
  queued = 0;
  second();
  expect(other.shown).toEqual(first.shown);
});
