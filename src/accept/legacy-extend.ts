/** Imported before http-proxy: what it calls for each request is deprecated (DEP0060), and would say so on stderr. */
import util from "node:util";

Object.assign(util, { _extend: Object.assign });
