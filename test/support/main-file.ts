/** The program that tests start, seen from the project's folder: the sources, unless `TESTED_MAIN` names what was built from them. */
export const MAIN = process.env.TESTED_MAIN ?? 'src/main.ts';
