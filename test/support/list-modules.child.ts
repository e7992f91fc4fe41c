/** Preloaded into a process: writes the URL of each module that it loads, one a line, to the file that LIST_MODULES names. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const path = process.env.LIST_MODULES ?? '';

registerHooks({
  load(url, context, nextLoad) {
    appendFileSync(path, `${url}\n`);
    return nextLoad(url, context);
  },
});
