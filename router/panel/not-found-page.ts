import { html } from 'hono/html'

/** What a browser gets where the router has nothing; `root` is how that page names the folder of the router. */
export function notFoundPage(path: string, root: string) {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Not found · Waybill router</title>
<link rel="icon" href="${root}panel/icon.svg">
<link rel="stylesheet" href="${root}panel/base.css">
<link rel="stylesheet" href="${root}panel/shell.css">
<link rel="stylesheet" href="${root}panel/panel.css">
</head>
<body>
<header class="top"><a class="brand" href="${root}panel"><img src="${root}panel/icon.svg" alt="" width="24" height="24"> Waybill</a></header>
<nav aria-label="Pages"><ul><li><a href="${root}panel"><span>Router</span></a></li></ul></nav>
<main><section class="card wide"><h1>There is no such page</h1>
<p>Nothing is at <code>${path.slice(0, 200)}</code>. Programs call this router in the place of their provider.</p>
<p><a href="${root}panel">The panel</a> · <a href="${root}docs">API reference</a></p></section></main>
</body>
</html>`
}
