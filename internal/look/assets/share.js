// The share box works without reloading the page. It works without JavaScript too.

import { enhance } from "./forms.js";

enhance();
