/** Loads the tracing libraries only when the environment turns tracing on, so that a start without tracing stays fast. */
import { readTracingSettings } from './settings.ts';
import type { Tracing, TracingOptions } from './exporting.ts';

/** Undefined when tracing is off. An invalid value is a warning and never rejects. */
export async function openTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const settings = readTracingSettings(options.env);
  for (const message of settings.warnings) options.observe({ kind: 'warning', message });
  if (settings.kind === 'off') return undefined;
  const { createTracing } = await import('./exporting.ts');
  return createTracing(options, settings);
}
