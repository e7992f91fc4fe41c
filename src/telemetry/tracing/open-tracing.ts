/**
 * The door to tracing. The libraries behind it are loaded when the environment asks for traces, and not otherwise: who traces
 * nothing pays nothing, not even at the start.
 */
import { readTracingSettings } from './settings.ts';
import type { Tracing, TracingOptions } from './tracing.ts';

/** Undefined when nothing is to be traced. Never rejects for a value that means nothing: that is a warning. */
export async function openTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const settings = readTracingSettings(options.env);
  for (const message of settings.warnings) options.observe({ kind: 'warning', message });
  if (settings.kind === 'off') return undefined;
  const { createTracing } = await import('./exporting.ts');
  return createTracing(options, settings);
}
