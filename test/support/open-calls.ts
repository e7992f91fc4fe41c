/** Reads what a sidecar has written into its file of unknown calls. */
import { listEnded, OpenCalls, type OpenCall } from '../../src/unknown-calls/call-records.ts';

/** The calls of a file that have no end in it, and none in the file of settled calls, in their order. */
export function listOpenCalls(text: string, settled: string): OpenCall[] {
  const open = new OpenCalls(listEnded(settled));
  open.read(text);
  return open.calls;
}
