/**
 * Renders the metrics in the Prometheus text format, a slice at a time: twenty routes have ten thousand lines, and no call waits for all of
 * them. A series is read at one instant, so that the buckets of a histogram belong together.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MetricValueWithName, Registry } from 'prom-client';

/** A few milliseconds of work. */
const SLICE_LINES = 500;

export async function renderMetrics(registry: Registry): Promise<string> {
  const parts: string[] = [];
  let lines = 0;
  for (const { name } of registry.getMetricsAsArray()) {
    const read = await registry.getSingleMetric(name)?.get();
    if (read === undefined) continue;
    let text = `# HELP ${read.name} ${escape(read.help)}\n# TYPE ${read.name} ${String(read.type)}\n`;
    for (const value of read.values) {
      text += renderLine(read.name, value);
      if (++lines % SLICE_LINES === 0) await nextTurn();
    }
    parts.push(text);
  }
  return parts.join('\n');
}

function renderLine(name: string, { metricName = name, labels, value }: MetricValueWithName<string>): string {
  let listed = '';
  for (const [label, text] of Object.entries(labels))
    listed += `${listed === '' ? '' : ','}${label}="${escape(String(text)).replaceAll('"', String.raw`\"`)}"`;
  return `${metricName}${listed === '' ? '' : `{${listed}}`} ${renderValue(value)}\n`;
}

function renderValue(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

function escape(text: string): string {
  return text.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`);
}
