/** What helm says after an installation about limits that several replicas multiply. */
import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CHART, helmTemplate } from '../support/helm.ts';
import { CONFIG, CLUSTER, scratchFolder, writeValues, type Values } from './chart.ts';

/** `helm template` does not print NOTES.txt, so the notes are rendered as an ordinary template. */
function notesOf(values: Values): string {
  const chart = join(scratchFolder(), 'chart');
  cpSync(CHART, chart, { recursive: true });
  const [notes, template] = ['NOTES.txt', '_notes.tpl'].map((name) => join(chart, 'templates', name)) as [
    string,
    string,
  ];
  renameSync(notes, template);
  writeFileSync(template, `{{- define "notes" -}}${readFileSync(template, 'utf8')}{{- end -}}`);
  writeFileSync(join(chart, 'templates', 'notes.yaml'), 'kind: Notes\ntext: {{ include "notes" . | toJson }}\n');
  const file = writeValues({ ...values, config: { ...CONFIG, ...(values.config as Values | undefined) } });
  const objects = helmTemplate('partner', chart, '--values', file, ...CLUSTER, '--show-only', 'templates/notes.yaml');
  return (objects[0] as unknown as { text: string }).text;
}

const standalone = (replicas: number, values: Values = {}): Values => ({
  mode: 'standalone',
  standalone: { replicas },
  ...values,
});
const MULTIPLIED = /Each (?:of the \d+ replicas|pod of the app) keeps to (.*) for itself/;

it.each<[string, Values, string]>([
  ['a rate', { config: { SIDECAR_RATE: 50 } }, 'throttle.rate'],
  [
    'a rate from elsewhere',
    { extraEnv: [{ name: 'SIDECAR_RATE', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
    'throttle.rate',
  ],
  ['a highest rate', { config: { SIDECAR_THROTTLE_MAX_RATE: '9.5' } }, 'throttle.maxRate'],
  ['declared limits', { config: { SIDECAR_THROTTLE_LIMITS: '[{"calls":350,"per":"10s"}]' } }, 'throttle.limits'],
  [
    'declared limits in a file',
    { configFile: { content: { throttle: { limits: [{ calls: 350, per: '10s' }] } } } },
    'throttle.limits',
  ],
  ['a rate in a file', { configFile: { content: { throttle: { rate: 5 } } } }, 'throttle.rate'],
  [
    'rates of routes in a file, as text',
    { configFile: { content: 'routes: [{ name: a, throttle: { maxRate: 5 } }, { name: b, throttle: { rate: 5 } }]' } },
    'throttle.maxRate and throttle.rate',
  ],
  [
    'a share of one route only',
    { configFile: { content: 'throttle: { rate: 5 }\nroutes: [{ name: a, throttle: { share: 3 } }]' } },
    'throttle.rate',
  ],
  ['a share of 1', { config: { SIDECAR_RATE: '50', SIDECAR_THROTTLE_SHARE: '1' } }, 'throttle.rate'],
])('with %s, several replicas are told that it adds up', (_, values, names) => {
  const text = notesOf(standalone(3, values));
  expect(MULTIPLIED.exec(text)?.[1]).toBe(names);
  expect(text).toContain('Each of the 3 replicas');
  expect(text).toContain('together they send 3 times as much.\nSet SIDECAR_THROTTLE_SHARE to their number');
  expect(notesOf(standalone(1, values))).not.toMatch(MULTIPLIED);
  expect(MULTIPLIED.exec(notesOf(values))?.[1], 'beside an app').toBe(names);
});

const RATE = { SIDECAR_RATE: '50' };

it.each<[string, Values]>([
  ['a limit that is learned', {}],
  ['auto', { config: { SIDECAR_RATE: 'auto' } }],
  ['a share', { config: { ...RATE, SIDECAR_THROTTLE_SHARE: 3 } }],
  ['a share in a file', { config: RATE, configFile: { content: { throttle: { share: 3 } } } }],
  ['a fleet', { config: RATE, fleet: { secretName: 'redis' } }],
  [
    'the URL of a fleet',
    { extraEnv: [{ name: 'SIDECAR_REDIS_URL', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }], config: RATE },
  ],
  ['a fleet in a file', { config: RATE, configFile: { content: { fleet: { redisUrlFile: '/redis/url' } } } }],
  [
    'auto over the rate of a file',
    { config: { SIDECAR_RATE: 'auto' }, configFile: { content: 'throttle: { rate: 5 }' } },
  ],
  [
    'no declared limits',
    { config: { SIDECAR_THROTTLE_LIMITS: '[]' }, configFile: { content: { throttle: { limits: [] } } } },
  ],
  ['an empty setting', { configFile: { content: 'throttle: { rate: }' } }],
])('with %s they are not', (_, values) => {
  for (const all of [standalone(3, values), values]) {
    const text = notesOf(all);
    expect(text).not.toMatch(MULTIPLIED);
    expect(text).toMatch(/These Secrets must exist|No Secret is needed/);
  }
});
